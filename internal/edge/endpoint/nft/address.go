package nft

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"howdah/internal/edge/endpoint"
)

// device carries the addresses of endpoints. Every machine has it, and the kernel answers for its
// addresses on all other devices.
const device = "lo"

// labelOf returns the label of this home's addresses, by which they are found again after a kill
// -9. The kernel takes 15 bytes that begin with the device's name.
func labelOf(home string) string { return device + ":h_" + home }

// addresses are the addresses of this machine.
type addresses struct {
	ours   []netip.Addr // with our label
	others []netip.Addr
}

func readAddresses(label string) (addresses, error) {
	list, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return addresses{}, fmt.Errorf("list addresses: %w", err)
	}
	var all addresses
	for _, a := range list {
		addr, ok := netip.AddrFromSlice(a.IP.To4())
		if ok && a.Label == label {
			all.ours = append(all.ours, addr)
		} else if ok {
			all.others = append(all.others, addr)
		}
	}
	return all, nil
}

// addressesOf returns the addresses that endpoints need and a machine does not have anyway.
func addressesOf(all []endpoint.Endpoint) []netip.Addr {
	var need []netip.Addr
	for _, e := range all {
		if a := e.Listen.Addr(); !endpoint.Local(a) && !e.Away {
			need = append(need, a)
		}
	}
	return slices.Compact(need) // all is sorted
}

// addAddresses gives the machine what endpoints need and returns what was added.
// An address that an administrator has set is used as it is.
func addAddresses(label string, all []endpoint.Endpoint) ([]netip.Addr, error) {
	need := addressesOf(all)
	if len(need) == 0 {
		return nil, nil
	}
	have, err := readAddresses(label)
	if err != nil {
		return nil, err
	}
	var added []netip.Addr
	for _, a := range need {
		if slices.Contains(have.ours, a) || slices.Contains(have.others, a) {
			continue
		}
		err := onDevice(netlink.AddrAdd, a, label)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return added, fmt.Errorf("add address %s to %s: %w", a, device, err)
		}
		added = append(added, a)
	}
	return added, nil
}

// dropAddresses removes addresses with our label that no endpoint needs.
func dropAddresses(label string, all []endpoint.Endpoint) error {
	have, err := readAddresses(label)
	if err != nil {
		return err
	}
	need := addressesOf(all)
	for _, a := range have.ours {
		if slices.Contains(need, a) {
			continue
		}
		err := onDevice(netlink.AddrDel, a, label)
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("remove address %s from %s: %w", a, device, err)
		}
	}
	return nil
}

func onDevice(do func(netlink.Link, *netlink.Addr) error, a netip.Addr, label string) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	return do(link, &netlink.Addr{
		IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)},
		Label: label,
		Scope: unix.RT_SCOPE_HOST,
	})
}

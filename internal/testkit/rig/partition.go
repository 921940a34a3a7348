package rig

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"howdah/internal/testkit/patience"
)

// Side is a part of the network that a host can be cut off from. The host still reaches the other
// parts, and they reach it.
type Side struct {
	name      string
	addresses []string
	// If addresses are shared, ports are the ports that belong to the side. except says that all
	// other ports do.
	ports, except string
	deaf, mute    bool
}

// controlPorts are the ports of the control plane: etcd's and the API's.
const controlPorts = "{ 2378, 2379, 2380, 7443 }"

// Control is the control plane with its etcd.
func Control() Side {
	return Side{name: "control plane", addresses: []string{controlIP}, ports: controlPorts}
}

// Clients are the clients beside the control plane, with the edge there.
func Clients() Side {
	return Side{name: "clients", addresses: []string{controlIP}, except: controlPorts}
}

// Peers returns the hosts of these zones, or all hosts. A host is not cut off from itself.
func Peers(zones ...string) Side {
	s := Side{name: "peers"}
	if len(zones) == 0 {
		zones = Zones
	}
	for _, z := range zones {
		s.addresses = append(s.addresses, hostIP(z))
	}
	return s
}

// Deaf returns the side with only what comes from there lost.
func (s Side) Deaf() Side { s.name, s.deaf, s.mute = "what comes from "+s.name, true, false; return s }

// Mute returns the side with only what goes there lost.
func (s Side) Mute() Side { s.name, s.deaf, s.mute = "what goes to "+s.name, false, true; return s }

func (s Side) String() string { return s.name }

// Part cuts a host off from exactly these sides. Without any the host is whole again. Packets are
// lost without a word, as on a network, also those of open connections. Neighbours still find each
// other's addresses (ARP). It is for rigs with namespaces.
func (r *Rig) Part(zone string, sides ...Side) error {
	if r.net == nil {
		return errors.New("part a network: the rig has no namespaces")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(10*time.Second))
	defer cancel()
	args := r.HostCommand(zone, "nft", "-f", "-")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(partRules(hostIP(zone), sides))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cut zone %s off from %v: %w: %s", zone, sides, err, out)
	}
	return nil
}

// ForgetNeighbours makes the machine of the clients ask anew who has an address, like a machine
// that has just come to the network.
func (r *Rig) ForgetNeighbours() error { return run("ip neigh flush dev " + r.net.bridge()) }

// partRules returns the whole table that parts a host from sides, which is replaced in one
// transaction. It sees incoming packets before any translation, and outgoing ones after it.
func partRules(own string, sides []Side) string {
	text := "add table ip rig_parted\ndelete table ip rig_parted\n"
	if len(sides) == 0 {
		return text
	}
	var in, out []string
	for _, s := range sides {
		for _, a := range s.addresses {
			if a == own {
				continue
			}
			if !s.mute {
				in = append(in, "\t\tip saddr "+a+s.portRule("sport")+" drop")
			}
			if !s.deaf {
				out = append(out, "\t\tip daddr "+a+s.portRule("dport")+" drop")
			}
		}
	}
	return text + fmt.Sprintf(`table ip rig_parted {
	chain in {
		type filter hook prerouting priority raw
%s
	}
	chain out {
		type filter hook postrouting priority srcnat - 50
%s
	}
}
`, strings.Join(in, "\n"), strings.Join(out, "\n"))
}

func (s Side) portRule(end string) string {
	switch {
	case s.ports != "":
		return " tcp " + end + " " + s.ports
	case s.except != "":
		return " tcp " + end + " != " + s.except
	}
	return ""
}

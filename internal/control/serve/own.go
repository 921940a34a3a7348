package serve

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"howdah/internal/host/hostapi"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// own knows where this home itself listens. What users have delivered must not be delivered there.
// People's own receivers may be on the same machines. So it goes by ports, except for the networks
// that belong to the home alone.
type own struct {
	networks []netip.Prefix
	control  []netip.AddrPort // of this control plane
	anywhere uint16           // the API's port, if it listens at all addresses; or 0
	cache    *state.Cache
}

// own returns an own. It may be asked only while cache runs.
func (cfg Config) own(cache *state.Cache) *own {
	o := &own{cache: cache}
	for _, network := range []string{cfg.Home.Network + ".0.0/16", cfg.Pool} {
		if p, err := netip.ParsePrefix(network); err == nil {
			o.networks = append(o.networks, p.Masked())
		}
	}
	o.control = controlPlane(cfg.hostAddr())
	o.control = append(o.control, controlPlane(net.JoinHostPort(cfg.Address, strconv.Itoa(etcdClientPort)))...)
	if host, port, err := net.SplitHostPort(cfg.Home.Listen); err == nil {
		ip, err := netip.ParseAddr(host)
		number, badPort := strconv.ParseUint(port, 10, 16)
		if host == "" || err == nil && ip.IsUnspecified() {
			o.anywhere = uint16(number)
		}
		if host == "localhost" && badPort == nil {
			o.control = append(o.control, netip.AddrPortFrom(netip.IPv6Loopback(), uint16(number)), netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(number)))
		}
	}
	return o
}

// controlPlane returns where a control plane listens whose API has this address.
func controlPlane(api string) []netip.AddrPort {
	at, err := netip.ParseAddrPort(api)
	if err != nil {
		return nil
	}
	ip := at.Addr().Unmap()
	return []netip.AddrPort{netip.AddrPortFrom(ip, at.Port()), netip.AddrPortFrom(ip, etcdClientPort), netip.AddrPortFrom(ip, etcdPeerPort), netip.AddrPortFrom(ip, etcdGatePort)}
}

// listens reports whether something of the home listens there, or may listen there.
func (o *own) listens(at netip.AddrPort) bool {
	ip := at.Addr().Unmap().WithZone("")
	at = netip.AddrPortFrom(ip, at.Port())
	return slices.ContainsFunc(o.networks, func(p netip.Prefix) bool { return p.Contains(ip) }) ||
		slices.Contains(o.control, at) || at.Port() == o.anywhere && o.anywhere != 0 && ofThisMachine(ip) ||
		o.isOtherControlPlane(at) || o.isHost(at)
}

func (o *own) isOtherControlPlane(at netip.AddrPort) bool {
	return slices.ContainsFunc(state.LoadAll[hostapi.ControlMember](o.cache, state.ControlRoot), func(r state.Record[hostapi.ControlMember]) bool {
		u, err := url.Parse(r.Value.URL)
		return err == nil && slices.Contains(controlPlane(u.Host), at)
	})
}

// isHost reports whether the agent of a host listens there, or PostgreSQL or Patroni of its
// members.
func (o *own) isHost(at netip.AddrPort) bool {
	for _, h := range state.LoadAll[member.Host](o.cache, state.HostRoot) {
		if ip, err := netip.ParseAddr(h.Value.Address); err != nil || ip.Unmap() != at.Addr() {
			continue
		}
		port := int(at.Port())
		if port >= member.FirstAgentPort && port <= member.LastAgentPort {
			return true
		}
		for _, a := range state.LoadAll[member.Assignment](o.cache, state.AssignPrefix(h.Value.Name)) {
			if port == a.Value.Port || port == a.Value.RESTPort {
				return true
			}
		}
	}
	return false
}

// ofThisMachine reports whether an address belongs to this machine. What listens at all addresses
// also listens there.
func ofThisMachine(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(all, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap().WithZone("") == ip
	})
}

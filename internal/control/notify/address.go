package notify

import (
	"net/netip"
	"slices"
)

// forbidden reports whether nobody may have messages delivered to an address: because only the host
// itself is near it, as with the metadata services of clouds, or because it is no host.
func forbidden(ip netip.Addr) bool {
	return ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() ||
		slices.ContainsFunc(refused, func(p netip.Prefix) bool { return p.Contains(ip.WithZone("")) })
}

// refused has forbidden networks that are not link-local by their form.
var refused = []netip.Prefix{
	netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("0.0.0.0/8"),          // this host, for some kernels
	netip.MustParsePrefix("fd00:ec2::/32"),      // services of EC2, such as fd00:ec2::254
	netip.MustParsePrefix("fd20:ce::254/128"),   // the metadata service of Google Cloud
	netip.MustParsePrefix("100.100.100.200/32"), // that of Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // the platform of Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // the metadata service of Oracle Cloud, of old
	netip.MustParsePrefix("fec0::/10"),          // site-local addresses, of old
}

// The addresses of these networks hold another address, to which a gateway passes packets on.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
	compatible = netip.MustParsePrefix("::/96")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // of SIIT
)

// carried returns the IPv4 addresses that an IPv6 address may stand for. In the local prefix of
// NAT64 an operator chooses where they stand, so it tries all forms of RFC 6052.
func carried(ip netip.Addr) []netip.Addr {
	if !ip.Is6() || ip.Is4In6() || ip.IsLoopback() {
		return nil
	}
	b := ip.As16()
	at := func(places ...int) netip.Addr {
		return netip.AddrFrom4([4]byte{b[places[0]], b[places[1]], b[places[2]], b[places[3]]})
	}
	plain := ip.WithZone("")
	switch {
	case nat64.Contains(plain), compatible.Contains(plain), translated.Contains(plain):
		return []netip.Addr{at(12, 13, 14, 15)}
	case nat64Local.Contains(plain):
		return []netip.Addr{at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), at(12, 13, 14, 15)}
	case sixToFour.Contains(plain):
		return []netip.Addr{at(2, 3, 4, 5)}
	case teredo.Contains(plain):
		client := netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
		return []netip.Addr{client, at(4, 5, 6, 7)}
	}
	if isatap := b[10] == 0x5e && b[11] == 0xfe && b[9] == 0 && b[8]&^2 == 0; isatap {
		return []netip.Addr{at(12, 13, 14, 15)}
	}
	return nil
}

package notify

import (
	"errors"
	"net/netip"
	"testing"
)

// TestAddresses checks that the metadata services of clouds are refused in every form of their
// addresses, and so are the home's own addresses. Others are not.
func TestAddresses(t *testing.T) {
	own := func(at netip.AddrPort) bool { return at == netip.MustParseAddrPort("10.0.0.1:7443") }
	for address, want := range map[string]error{
		"169.254.169.254:80":                        errForbidden,
		"[::ffff:169.254.169.254]:80":               errForbidden, // mapped
		"[::169.254.169.254]:80":                    errForbidden, // compatible
		"[::ffff:0:a9fe:a9fe]:80":                   errForbidden, // SIIT
		"[fd00:ec2::254]:80":                        errForbidden,
		"[fd00:ec2::23]:80":                         errForbidden,
		"[fe80::1%eth0]:80":                         errForbidden,
		"[64:ff9b::169.254.169.254]:80":             errForbidden, // NAT64
		"[64:ff9b::a9fe:1]:80":                      errForbidden,
		"[64:ff9b:1::169.254.169.254]:80":           errForbidden, // of the local prefix, /96
		"[64:ff9b:1:abcd:ef01:2345:a9fe:a9fe]:80":   errForbidden,
		"[64:ff9b:1:a9fe:a9:fe00::]:80":             errForbidden, // /48
		"[64:ff9b:1:12a9:fe:a9fe::]:80":             errForbidden, // /56
		"[64:ff9b:1:1234:a9:fea9:fe00::]:80":        errForbidden, // /64
		"[2002:a9fe:a9fe::1]:80":                    errForbidden, // 6to4
		"[2001:0:a9fe:a9fe::]:80":                   errForbidden, // a Teredo server
		"[2001:0:4136:e378:8000:63bf:5601:5601]:80": errForbidden, // a Teredo client: the bits are turned
		"[2001:db8::5efe:169.254.169.254]:80":       errForbidden, // ISATAP
		"[fec0::1]:80":                              errForbidden,
		"0.0.0.0:80":                                errForbidden,
		"0.1.2.3:80":                                errForbidden,
		"[::]:80":                                   errForbidden,
		"255.255.255.255:80":                        errForbidden,
		"224.0.0.1:80":                              errForbidden,
		"[ff02::1]:80":                              errForbidden,
		"100.100.100.200:80":                        errForbidden,
		"not-an-address":                            errForbidden,
		"10.0.0.1:7443":                             errOwn,
		"[::ffff:10.0.0.1]:7443":                    errOwn,
		"[64:ff9b::10.0.0.1]:7443":                  errOwn,
		"[2002:a00:1::]:7443":                       errOwn,
		"10.0.0.1:80":                               nil,
		"127.0.0.1:80":                              nil,
		"[::1]:80":                                  nil,
		"192.0.2.1:80":                              nil,
		"[2001:db8::1]:80":                          nil,
		"[fd00:ec3::254]:80":                        nil,
		"[64:ff9b::192.0.2.1]:80":                   nil,
		"[2002:c000:201::1]:80":                     nil,
		"[2001:4860:4860::8888]:80":                 nil,
		"[fd12:3456:789a::1]:80":                    nil,
	} {
		if err := allowed(address, own); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
}

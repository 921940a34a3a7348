package hostapi

import (
	"context"
	"crypto/x509"
	"errors"
	"testing"

	"howdah/internal/identity/certs"
	keys "howdah/internal/model/kind"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

func TestCertificatesAreForTheCallersOwnNamesOnly(t *testing.T) {
	w := newWorld(t)
	assignment := member.Assignment{ID: "d1.m1", Scope: "d1", Name: "m1", ServerIPs: []string{"127.9.9.1", "127.9.9.2"}, ServerNames: []string{"d.c1.r.howdah.test"}}
	if _, err := w.Store.Commit(t.Context(), state.Put(state.Assign("db1", "d1.m1"), assignment)); err != nil {
		t.Fatal(err)
	}
	owner, other := w.client(t, w.Issue(t, "agent:db1")), w.client(t, w.Issue(t, "agent:db2"))
	edge, stranger := w.client(t, w.Issue(t, "edge:db1")), w.client(t, w.Issue(t, "howdah-serve"))
	if _, err := w.Store.Commit(t.Context(), state.Put(state.Host("db1"), member.Host{Name: "db1", Address: "127.9.9.3"})); err != nil {
		t.Fatal(err)
	}
	certificate := func(c *Client, member string, use Use) (string, error) {
		pair, err := c.Certificate(t.Context(), member, use, keys.EC256, w.CA.CertPEM)
		if err != nil {
			return "", err
		}
		leaf := leafOf(t, pair).Leaf
		text := leaf.Subject.CommonName
		for _, ip := range leaf.IPAddresses {
			text += " " + ip.String()
		}
		for _, name := range leaf.DNSNames {
			text += " " + name
		}
		for _, usage := range leaf.ExtKeyUsage {
			text += map[x509.ExtKeyUsage]string{x509.ExtKeyUsageServerAuth: " server", x509.ExtKeyUsageClientAuth: " client"}[usage]
		}
		if use == ForClient {
			if err := leaf.CheckSignatureFrom(w.members.Cert); err != nil || string(pair.CAPEM) != string(w.CA.CertPEM)+string(w.members.CertPEM) {
				t.Errorf("by another authority, or another one is named: %v", err)
			}
			return text, nil
		}
		return text, leaf.CheckSignatureFrom(w.CA.Cert)
	}
	cases := []struct {
		name   string
		client *Client
		member string
		use    Use
		want   string // or refused
	}{
		{"a host its own", owner, "", ForAll, "agent:db1 server client"},
		{"a host that of a server of its own", owner, "", ForServer, "server:db1 127.9.9.3 127.9.9.3 server"},
		{"a host a client's for nobody", owner, "", ForClient, ""},
		{"a host that has not told its address", other, "", ForServer, ""},
		{"a host its member's, of an older release", owner, "d1.m1", ForAll, "agent:db1 127.9.9.1 127.9.9.2 d.c1.r.howdah.test server client"},
		{"a host its member's server's", owner, "d1.m1", ForServer, "server:d1.m1 127.9.9.1 127.9.9.2 d.c1.r.howdah.test server"},
		{"a host its member's own", owner, "d1.m1", ForClient, "member:d1.m1 client"},
		{"a host one for nothing", owner, "d1.m1", "everything", ""},
		{"an edge its own", edge, "", ForAll, "edge:db1 server client"},
		{"an edge that of a server", edge, "", ForServer, ""},
		{"another host the member's", other, "d1.m1", ForAll, ""},
		{"another host the member's own", other, "d1.m1", ForClient, ""},
		{"an edge of that name the member's", edge, "d1.m1", ForAll, ""},
		{"an edge of that name the member's own", edge, "d1.m1", ForClient, ""},
		{"a host a member that is nowhere", owner, "d1.m2", ForClient, ""},
		{"a host a member by a path", owner, "../db1/d1.m1", ForServer, ""},
		{"one who is no host", stranger, "", ForAll, ""},
	}
	for _, c := range cases {
		got, err := certificate(c.client, c.member, c.use)
		if got != c.want || c.want == "" && !errors.Is(err, ErrRefused) || c.want != "" && err != nil {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	if _, err := certificate(newClient(w.url, certs.PinnedTLS(certs.Fingerprint(w.CA.Cert))), "", ForAll); !errors.Is(err, ErrRefused) {
		t.Errorf("without a certificate: %v, want ErrRefused", err)
	}
}

// The authority of a member's assignment signs the certificate of its server. It never signs a
// host's own certificate.
func TestCertificatesAreByTheAuthorityOfTheAssignment(t *testing.T) {
	w := newWorld(t)
	ca, _, err := w.CA.NewAuthority("howdah-ca-g2", keys.EC256)
	if err != nil {
		t.Fatal(err)
	}
	unknown := errors.New("no such authority")
	w.server.Authority = func(_ context.Context, name string) (*certs.CA, error) {
		if name != "howdah-ca-g2" {
			return nil, unknown
		}
		return ca, nil
	}
	for member, authority := range map[string]string{"d1.m1": "howdah-ca-g2", "d1.m2": "", "d1.m3": "strange"} {
		assignment := assigned(member, authority)
		if _, err := w.Store.Commit(t.Context(), state.Put(state.Assign("db1", member), assignment)); err != nil {
			t.Fatal(err)
		}
	}
	host := w.client(t, w.Issue(t, "agent:db1"))
	for member, want := range map[string]string{"d1.m1": "howdah-ca-g2", "d1.m2": "", "": ""} {
		pair, err := host.Certificate(t.Context(), member, ForAll, keys.RSA2048, w.CA.CertPEM)
		if err != nil {
			t.Fatal(err)
		}
		if got := certs.AuthorityOf(leafOf(t, pair).Leaf); got != want {
			t.Errorf("of %q: by %q, want %q", member, got, want)
		}
	}
	if _, err := host.Certificate(t.Context(), "d1.m3", ForAll, keys.EC256, w.CA.CertPEM); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("by an authority that nobody knows: %v", err)
	}
}

func assigned(id, authority string) member.Assignment {
	return member.Assignment{ID: id, Scope: "d1", ServerIPs: []string{"127.9.9.1"}, Authority: authority}
}

// The certificate of a member's client opens nothing of the home: the home's control planes take it
// for nobody.
func TestAMembersOwnCertificateIsNobodysHere(t *testing.T) {
	w := newWorld(t)
	for name, issue := range map[string]func() (certs.Pair, error){
		"a member's own": func() (certs.Pair, error) {
			return w.members.Issue(certs.Subject{CommonName: "agent:db1", For: certs.ClientOnly})
		},
		"a member's server's": func() (certs.Pair, error) {
			return w.CA.Issue(certs.Subject{CommonName: "agent:db1", For: certs.ServerOnly})
		},
	} {
		pair, err := issue()
		if err != nil {
			t.Fatal(err)
		}
		pair.CAPEM = w.CA.CertPEM
		if err := w.client(t, pair).Heartbeat(t.Context(), ""); err == nil {
			t.Errorf("%s beats for a host", name)
		}
	}
}

func TestWhoseACertificateIs(t *testing.T) {
	for name, want := range map[string]string{
		MemberName("db-1.m1"): "db-1.m1", "agent:db-1.m1": "", "db-1.m1": "", "": "", "member:": "", ServerName("db-1.m1"): "",
	} {
		if got := MemberOf(name); got != want {
			t.Errorf("%q is of %q, want %q", name, got, want)
		}
	}
}

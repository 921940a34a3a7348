package haproxy

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
)

func guarded(e endpoint.Endpoint, networks ...string) endpoint.Endpoint {
	e.Allow = []netip.Prefix{}
	for _, n := range networks {
		e.Allow = append(e.Allow, netip.MustParsePrefix(n))
	}
	return e
}

func TestParseView(t *testing.T) {
	const table = "# pxname,svname,scur,status,addr,\nclients,FRONTEND,0,OPEN,,\n"
	for name, c := range map[string]struct {
		list     string
		guarded  bool
		networks []string
	}{
		"some":             {"0x55d1 192.168.1.1/32\n0x55d2 10.0.0.0/8\n\n", true, []string{"10.0.0.0/8", "192.168.1.1/32"}},
		"nobody":           {"\n", true, nil},
		"an older version": {"Unknown ACL identifier. Please use #<id> or <name>.\n\n", false, nil},
	} {
		v, err := parseView(table + "\n" + c.list)
		if diff := cmp.Diff(c.networks, v.networks); err != nil || v.guarded != c.guarded || !v.open || diff != "" {
			t.Errorf("%s: %+v, %v\n%s", name, v, err, diff)
		}
	}
	if _, err := parseView("Permission denied\n"); err == nil {
		t.Error("no table is a table")
	}
}

func TestChanges(t *testing.T) {
	v := view{guarded: true, networks: []string{"10.0.0.0/8", "11.0.0.0/8"}}
	for name, c := range map[string]struct {
		e    endpoint.Endpoint
		want []string
	}{
		"the same": {guarded(lead(nowhere), "11.0.0.0/8", "10.0.0.0/8"), nil},
		"others":   {guarded(lead(nowhere), "11.0.0.0/8", "12.0.0.0/8"), []string{"add acl f 12.0.0.0/8", "del acl f 10.0.0.0/8"}},
		"nobody":   {guarded(lead(nowhere)), []string{"del acl f 10.0.0.0/8", "del acl f 11.0.0.0/8"}},
		"everyone": {lead(nowhere), []string{"add acl f 0.0.0.0/0", "del acl f 10.0.0.0/8", "del acl f 11.0.0.0/8"}},
	} {
		if diff := cmp.Diff(c.want, v.changes("f", c.e)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if got := v.admits(c.e); got != (c.want == nil) {
			t.Errorf("%s: admits %v", name, got)
		}
	}
	if old := (view{}); !old.admits(lead(nowhere)) || old.admits(guarded(lead(nowhere))) {
		t.Error("a proxy that asks nobody lets everyone in, and only that")
	}
}

// A target on loopback sees the endpoint's address. So it can tell clients that came through the
// endpoint from all others of the machine.
func TestTargetSeesTheEndpoint(t *testing.T) {
	f := newForwarder(t, runDir(t))
	listen, first, second := conformance.SomeListen(), conformance.NewServer(t), conformance.NewServer(t)
	mustSync(t, f, lead(listen, first))
	for _, server := range []netip.AddrPort{first, second} {
		if err := f.Point(t.Context(), lead(listen, server)); err != nil {
			t.Fatal(err)
		}
		s := conformance.Join(t, listen, server)
		if _, client, err := s.Who(); err != nil || client.Addr() != listen.Addr() {
			t.Errorf("it sees %s, %v", client, err)
		}
	}
}

// If somebody changes the list by hand, it is changed back.
func TestMeddlingWithTheList(t *testing.T) {
	f := newForwarder(t, runDir(t))
	e := guarded(lead(conformance.SomeListen(), conformance.NewServer(t)), "10.0.0.0/8")
	mustSync(t, f, e)
	files := filesOf(f.dir, e.Listen)
	if _, err := files.ask(t.Context(), "add acl "+files.admitted()+" 127.0.0.0/8"); err != nil {
		t.Fatal(err)
	}
	conformance.Join(t, e.Listen, e.Targets[0])
	if mended := mustSync(t, f, e); !strings.Contains(mended, "led elsewhere") {
		t.Errorf("mended %q", mended)
	}
	if v, err := files.look(t.Context()); err != nil || !v.admits(e) {
		t.Errorf("%+v, %v", v, err)
	}
}

// A proxy of a version without the check is replaced once not everyone may connect.
func TestOlderProxy(t *testing.T) {
	f := newForwarder(t, runDir(t))
	e := lead(conformance.SomeListen(), conformance.NewServer(t))
	files := filesOf(f.dir, e.Listen)
	var kept []string
	for line := range strings.Lines(render(e, files.socket(), os.DevNull, 100)) {
		if !strings.Contains(line, "admitted") {
			kept = append(kept, line)
		}
	}
	if err := os.WriteFile(files.config(), []byte(strings.Join(kept, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), f.program, "", "-D", "-f", files.config()); err != nil {
		t.Fatal(err)
	}
	if mended := mustSync(t, f, e); mended != "" {
		t.Errorf("mended %q", mended)
	}
	s := conformance.Join(t, e.Listen, e.Targets[0])
	mustSync(t, f, e)
	conformance.Check(t, s, e.Targets[0])
	mustSync(t, f, guarded(e, "10.0.0.0/8"))
	if v, err := files.look(t.Context()); err != nil || !v.guarded || !v.admits(guarded(e, "10.0.0.0/8")) {
		t.Errorf("%+v, %v", v, err)
	}
}

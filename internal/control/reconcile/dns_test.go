package reconcile

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/model/member"
	"howdah/internal/model/route"
	"howdah/internal/model/zone"
	"howdah/internal/state"
)

const theZone = zone.Zone("howdah.test")

func (b *bench) inZone(z zone.Zone) {
	b.Helper()
	b.put(state.Put(state.DNSZone(), zone.Setting{Zone: z}))
}

// named returns the name that the first database's route has.
func (b *bench) named() string {
	b.Helper()
	r, err := state.Load[route.Route](b.cache, state.Route(dbID))
	if err != nil {
		b.Fatal(err)
	}
	return r.Value.Name
}

func nameIn(z zone.Zone, id string) string {
	name, err := z.Name(zone.Instance, id, account, region)
	if err != nil {
		panic(err)
	}
	return name
}

// A zone that is set gives each member a new certificate, without a restart, and the endpoint its name
// once all of them have it. The address stays.
func TestAnEndpointHasItsNameAfterItsCertificates(t *testing.T) {
	b := made(t, true)
	listen, hosts := b.listens(dbID), b.hostsOf()
	b.inZone(theZone)
	b.steps()
	name := nameIn(theZone, "orders")
	if got := b.named(); got != "" {
		t.Fatalf("before any agent acted: %q", got)
	}
	for n, m := range []string{"m1", "m2"} {
		a := b.assigned(hosts[n], m).Value
		if diff := cmp.Diff([]string{name}, a.ServerNames); diff != "" {
			t.Errorf("%s: names of its certificate (-want +got)\n%s", m, diff)
		}
		if !slices.Contains(a.ServerIPs, "127.9.0.1") {
			t.Errorf("%s: addresses of its certificate: %v", m, a.ServerIPs)
		}
	}
	renewed := func(told int64, r *member.Report) { r.Generation, r.Rendered = told, told }
	b.acts(hosts[0], "m1", renewed)
	b.steps()
	if got := b.named(); got != "" {
		t.Fatalf("although the standby has no certificate yet: %q", got)
	}
	b.acts(hosts[1], "m2", renewed)
	b.steps()
	if got := b.named(); got != name {
		t.Fatalf("with all certificates: %q, want %q", got, name)
	}
	// Whatever is later asked of the members, it keeps the name.
	b.acts(hosts[0], "m1", func(told int64, r *member.Report) { r.Generation, r.Rendered = told, 1 })
	b.steps()
	if got := b.named(); got != name {
		t.Errorf("afterwards: %q", got)
	}
	// Another zone: the old name goes at once, the new one comes with the certificates.
	b.inZone("other.test")
	b.steps()
	if got := b.named(); got != "" {
		t.Errorf("in another zone, without certificates: %q", got)
	}
	b.acts(hosts[0], "m1", renewed)
	b.acts(hosts[1], "m2", renewed)
	b.steps()
	if got := b.named(); got != nameIn("other.test", "orders") {
		t.Errorf("in another zone: %q", got)
	}
	b.put(state.Delete(state.DNSZone()))
	b.steps()
	if got := b.named(); got != "" {
		t.Errorf("without a zone: %q", got)
	}
	if a := b.assigned(hosts[0], "m1").Value; a.ServerNames != nil {
		t.Errorf("without a zone its certificate has %v", a.ServerNames)
	}
	if got := b.listens(dbID); got != listen {
		t.Errorf("the endpoint moved from %s to %s", listen, got)
	}
}

// A database that is made in a zone has its name from the beginning.
func TestANewDatabaseHasItsName(t *testing.T) {
	b := newBench(t)
	b.inZone(theZone)
	b.want(b.instance(true))
	b.settle()
	if got, want := b.named(), nameIn(theZone, "orders"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A name that is too long for DNS takes nothing but itself: the database is served at its address.
func TestADatabaseWhoseNameIsTooLong(t *testing.T) {
	b := made(t, true)
	long := zone.Zone("")
	for range 25 {
		long += "zone67890."
	}
	b.inZone(long + "test")
	b.steps()
	if got := b.named(); got != "" {
		t.Errorf("%q", got)
	}
	if got := b.listens(dbID); got != "127.9.0.1:5432" {
		t.Errorf("served at %s", got)
	}
}

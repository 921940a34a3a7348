package agent

import (
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// What a host says of itself is what the machine says.
func TestHostFacts(t *testing.T) {
	d := newDorm(t)
	d.run()
	var h member.Host
	testkit.Eventually(t, hosttest.Soon, func() error {
		record, err := state.Get[member.Host](t.Context(), d.Store, state.Host(hosttest.Name))
		h = record.Value
		return err
	})
	if h.Name != hosttest.Name || h.Zone != "t" || h.Address != "127.0.0.1" || h.Version != "test" {
		t.Errorf("identity: %+v", h)
	}
	if h.CPUs < 1 || h.Memory < 1<<27 || h.Disk < h.DiskFree || h.DiskFree <= 0 || h.Containment == "" || h.Cut != "none" {
		t.Errorf("facts: %+v", h)
	}
}

func TestSameHost(t *testing.T) {
	a := member.Host{Name: "x", Disk: 1000, DiskFree: 505, Majors: map[int]string{15: "15.1"}}
	cases := []struct {
		name   string
		change func(*member.Host)
		want   bool
	}{
		{"nothing", func(*member.Host) {}, true},
		{"a little disk", func(h *member.Host) { h.DiskFree = 509 }, true},
		{"a hundredth of the disk", func(h *member.Host) { h.DiskFree = 490 }, false},
		{"an upgrade", func(h *member.Host) { h.Majors = map[int]string{15: "15.2"} }, false},
		{"a warning", func(h *member.Host) { h.Warnings = []string{"w"} }, false},
	}
	for _, c := range cases {
		b := a
		c.change(&b)
		if got := sameHost(a, b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

package plan

import (
	"slices"
	"testing"

	"howdah/internal/model/member"
)

// keyless is a Multi-AZ database of an older release: m1 leads, both show their hosts' keys.
func keyless() Input {
	in := rebooting()
	in.Want.Reboot, in.Want.Admits, in.Want.SpreadZones = 0, []string{"db-1"}, true
	in.Keys = Keys{Authority: "fingerprint", Everywhere: true, Admitted: true, FollowersOwn: true}
	for i := range in.Layout.Members {
		in.Layout.Members[i].Zone = in.Layout.Members[i].Host
	}
	for i := range in.Hosts {
		in.Hosts[i].Zone, in.Hosts[i].OwnKeys = in.Hosts[i].Name, true
	}
	return in
}

func ownKeys(l Layout) []string {
	var names []string
	for _, m := range l.Members {
		if m.OwnKey {
			names = append(names, m.Name)
		}
	}
	return names
}

func (in *Input) shows(names ...string) {
	for i, m := range in.Layout.Members {
		if slices.Contains(names, m.Name) {
			in.Layout.Members[i].OwnKey = true
			r := in.Reports[member.ID("db-1", m.Name)]
			r.OwnKey = true
			in.Reports[member.ID("db-1", m.Name)] = r
		}
	}
}

// A home of an older release is moved over step by step: all let in by both keys, then one
// after the other shows its own, the primary last, and then hosts' keys open nothing.
func TestMembersTakeKeysOfTheirOwn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Input)
		want   []string // who shall show its own
		keys   bool     // others' own are let in
		only   bool     // hosts' no more
	}{
		{"all let in by both: the standby first", func(*Input) {}, []string{"m2"}, true, false},
		{"some do not yet", func(in *Input) { in.Keys.Admitted = false }, nil, true, false},
		{"a host is of an older release", func(in *Input) { in.Keys.Everywhere = false }, nil, false, false},
		{"a control plane has no gate", func(in *Input) { in.Keys.Authority = "" }, nil, false, false},
		{"the standby was told, and has not done it", func(in *Input) { in.Layout.Members[1].OwnKey = true }, []string{"m2"}, true, false},
		{"the standby has done it", func(in *Input) { in.shows("m2") }, []string{"m1", "m2"}, true, false},
		{"both have", func(in *Input) { in.shows("m1", "m2") }, []string{"m1", "m2"}, true, true},
		{"both have, and a follower's has not", func(in *Input) { in.shows("m1", "m2"); in.Keys.FollowersOwn = false }, []string{"m1", "m2"}, true, false},
		{"the standby does not serve: nothing to wait for", func(in *Input) { in.Reports["db-1.m2"] = member.Report{} }, []string{"m1", "m2"}, true, false},
		{"all was done before a part of an older release came", func(in *Input) {
			in.shows("m1", "m2")
			in.Layout.KeyAuthority, in.Layout.OnlyOwnKeys, in.Keys = "fingerprint", true, Keys{}
		}, []string{"m1", "m2"}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := keyless()
			tt.change(&in)
			l := Next(in).Layout
			if got := ownKeys(l); !slices.Equal(got, tt.want) || l.OnlyOwnKeys != tt.only || (l.KeyAuthority != "") != tt.keys {
				t.Errorf("own keys of %v, only these %t, authority %q", got, l.OnlyOwnKeys, l.KeyAuthority)
			}
			a := Assign(in.Want, l, l.Members[1], 0)
			if (a.Keys != nil) != tt.keys || a.OwnKey() != slices.Contains(tt.want, "m2") || tt.keys && (a.Keys.Only != tt.only || !slices.Equal(a.Keys.Admits, in.Want.Admits)) {
				t.Errorf("m2 is told %+v", a.Keys)
			}
		})
	}
}

// A new database begins at the end of it.
func TestNewMembersHaveKeysOfTheirOwn(t *testing.T) {
	in := keyless()
	in.Layout, in.Leader, in.Reports, in.Applied, in.Assigned = Layout{}, "", nil, nil, nil
	for i := range in.Hosts {
		in.Hosts[i].Majors, in.Hosts[i].Memory = []int{0}, 8<<30
	}
	l := Next(in).Layout
	if len(l.Members) != 2 || len(ownKeys(l)) != 2 || !l.OnlyOwnKeys {
		t.Fatalf("%+v", l)
	}
	in.Keys.Authority = ""
	if l := Next(in).Layout; len(l.Members) != 2 || len(ownKeys(l)) != 0 || l.OnlyOwnKeys {
		t.Errorf("with a control plane of an older release: %+v", l)
	}
}

// Where hosts' keys open nothing, a host of an older release can take no member.
func TestAHostOfAnOlderReleaseTakesNoMember(t *testing.T) {
	for name, change := range map[string]func(*Input){
		"of its own":               func(in *Input) { in.Layout.OnlyOwnKeys = true },
		"of what follows such one": func(in *Input) { in.Keys.SourceOnly = true },
	} {
		in := keyless()
		in.Layout.Members = in.Layout.Members[:1]
		in.shows("m1")
		change(&in)
		in.Keys.Everywhere, in.Hosts[1].OwnKeys = false, false
		for i := range in.Hosts {
			in.Hosts[i].Majors, in.Hosts[i].Memory = []int{0}, 8<<30
		}
		if l := Next(in).Layout; len(l.Members) != 1 {
			t.Errorf("%s: %+v", name, l.Members)
		}
		in.Hosts[1].OwnKeys = true
		if l := Next(in).Layout; len(l.Members) != 2 || !l.Members[1].OwnKey {
			t.Errorf("%s, with its newest agent: %+v", name, l.Members)
		}
	}
}

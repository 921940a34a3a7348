package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"howdah/internal/model/extension"
	"howdah/internal/model/member"
)

// withExtensions returns three hosts in zones of their own, each with these extensions for 15, as
// "hll", or "hll 2.17".
func withExtensions(a, b, c []string) []Host {
	var all []Host
	for i, has := range [][]string{a, b, c} {
		name := string(rune('a' + i))
		h := Host{Name: name, Zone: name, Alive: true, Majors: []int{15}, CPUs: 8, Memory: 1 << 34}
		if has != nil {
			h.Extensions = map[int]extension.Installed{15: {}}
			for _, name := range has {
				name, version, _ := strings.Cut(name, " ")
				h.Extensions[15][name] = version
			}
		}
		all = append(all, h)
	}
	return all
}

// A member goes to a host that has what the others have, though another one is emptier.
func TestAMemberGoesWhereItsExtensionsAre(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts []Host
		want  string
	}{
		{"only c has them", withExtensions([]string{"hll", "postgis"}, []string{"hll"}, []string{"hll", "postgis"}), "c"},
		{"none has them", withExtensions([]string{"hll", "postgis"}, []string{}, []string{}), "b"},
		{"b has more of them", withExtensions([]string{"hll", "postgis"}, []string{"hll"}, []string{}), "b"},
		{"b is of an older release, which does not say", withExtensions([]string{"hll"}, nil, []string{}), "b"},
		{"b has an older one", withExtensions([]string{"postgis 3.5.0"}, []string{"postgis 3.3.2"}, []string{"postgis 3.6.0"}), "c"},
		{"c has more than is needed", withExtensions([]string{"hll"}, []string{"hll"}, []string{"hll", "rum"}), "b"},
	} {
		in := Input{Want: Database{ID: "db-1", Major: 15, SpreadZones: true, Seats: []Seat{{}, {}}}, Hosts: c.hosts,
			Layout: Layout{Members: []Placed{{Name: "m1", Host: "a", Zone: "a"}}}}
		m, err := begin(in).place(in.Want.Seats[0])
		if err != nil || m.Host != c.want {
			t.Errorf("%s: placed on %q, %v, want %s", c.name, m.Host, err, c.want)
		}
	}
}

// PostgreSQL does not start with a library that is missing: such a host is no place.
func TestAHostWithoutALibraryIsNoPlace(t *testing.T) {
	in := Input{
		Want:  Database{ID: "db-1", Major: 15, State: member.Running, Seats: []Seat{{Values: map[string]string{"shared_preload_libraries": "pg_cron, auto_explain"}}}},
		Hosts: withExtensions([]string{"auto_explain"}, []string{"auto_explain", "pg_cron"}, []string{"pg_cron"}),
	}
	got := Next(in).Layout.Members
	if len(got) != 1 || got[0].Host != "b" {
		t.Fatalf("it went to %+v", got)
	}
	in.Hosts = in.Hosts[:1]
	if err := CanPlace(in); err == nil || !strings.Contains(err.Error(), "a lacks the library pg_cron, which the parameter group preloads") {
		t.Errorf("where no host has it: %v", err)
	}
}

// That an agent of an older release does not say is no reason to begin there, and none to end what
// runs there.
func TestAHostThatDoesNotSayHasWhatComesWithPostgreSQL(t *testing.T) {
	in := Input{
		Want:   Database{ID: "db-1", Major: 15, State: member.Running, SpreadZones: true, Seats: []Seat{{Values: map[string]string{"shared_preload_libraries": "pg_cron"}}, {}}},
		Hosts:  withExtensions(nil, []string{"pg_cron", "hll", "citext"}, nil),
		Layout: Layout{Members: []Placed{{Name: "m1", Host: "a", Zone: "a", Served: true}, {Name: "m2", Host: "b", Zone: "b", Served: true}}, Next: 2},
	}
	out := Next(in)
	if len(out.Layout.Members) != 2 || out.Layout.Members[0].Host != "a" || out.Layout.Members[0].Going != Staying {
		t.Errorf("what runs is moved: %+v", out.Layout.Members)
	}
	if !slices.Equal(out.Layout.Missing, []string{"hll", "pg_cron"}) {
		t.Errorf("missing are %q", out.Layout.Missing)
	}
	if !slices.ContainsFunc(out.Problems, func(p Problem) bool {
		return p.Kind == LacksExtensions && p.Host == "a" && p.Text == "the agent of host a does not say which extensions it has, because it is of an older release or cannot look, and these cannot be created until it does: hll,pg_cron"
	}) {
		t.Errorf("told was %+v", out.Problems)
	}
	in.Layout, in.Hosts = Layout{}, withExtensions(nil, nil, nil)[:1]
	in.Want.Seats = in.Want.Seats[:1]
	if err := CanPlace(in); err == nil || !strings.Contains(err.Error(), "a does not say whether it has the library pg_cron") {
		t.Errorf("a new one: %v", err)
	}
	in.Want.Seats[0].Values["shared_preload_libraries"] = "auto_explain,pg_stat_statements"
	if err := CanPlace(in); err != nil {
		t.Errorf("with what comes with PostgreSQL: %v", err)
	}
}

// What is not on all hosts cannot be created, and the operator is told where it lacks.
func TestWhatSomeHostLacksIsNotCreated(t *testing.T) {
	in := Input{
		Want:   Database{ID: "db-1", Major: 15, State: member.Running, SpreadZones: true, Seats: []Seat{{}, {}}},
		Hosts:  withExtensions([]string{"hll", "rum"}, []string{"hll"}, []string{}),
		Layout: Layout{Members: []Placed{{Name: "m1", Host: "a", Zone: "a", Served: true}, {Name: "m2", Host: "b", Zone: "b", Served: true}}, Next: 2},
	}
	out := Next(in)
	if !slices.Equal(out.Layout.Missing, []string{"rum"}) {
		t.Fatalf("missing are %q", out.Layout.Missing)
	}
	told := slices.IndexFunc(out.Problems, func(p Problem) bool { return p.Kind == LacksExtensions })
	if told < 0 || out.Problems[told].Host != "b" || !strings.HasSuffix(out.Problems[told].Text, ": rum") {
		t.Errorf("told was %+v", out.Problems)
	}
	if a := Assign(in.Want, out.Layout, out.Layout.Members[0], 0); a.Parameters["howdah.absent_extensions"] != `"rum"` {
		t.Errorf("its host is told %q", a.Parameters["howdah.absent_extensions"])
	}
	in.Layout = out.Layout
	in.Hosts[1].Extensions[15]["rum"] = ""
	out = Next(in)
	if _, set := Assign(in.Want, out.Layout, out.Layout.Members[0], 0).Parameters["howdah.absent_extensions"]; set || len(out.Layout.Missing) > 0 {
		t.Errorf("when all have it, missing are %q", out.Layout.Missing)
	}
}

// Packages are upgraded host by host: meanwhile what is newer than on some host cannot be created,
// the operator is told where it is older, and nothing else changes.
func TestWhatSomeHostHasInAnOlderVersionIsNotCreated(t *testing.T) {
	in := Input{
		Want:   Database{ID: "db-1", Major: 15, State: member.Running, SpreadZones: true, Seats: []Seat{{}, {}}},
		Hosts:  withExtensions([]string{"postgis 3.3.2", "vector 0.8.0", "hll 2.17"}, []string{"postgis 3.3.2", "vector 0.8.0", "hll 2.17"}, nil),
		Layout: Layout{Members: []Placed{{Name: "m1", Host: "a", Zone: "a", Served: true}, {Name: "m2", Host: "b", Zone: "b", Served: true}}, Next: 2},
	}
	alike := Next(in)
	if len(alike.Layout.Missing) > 0 {
		t.Fatalf("where all are alike: %q", alike.Layout.Missing)
	}
	in.Hosts[0].Extensions[15]["postgis"], in.Hosts[0].Extensions[15]["vector"] = "3.5.0", "0.10.0"
	out := Next(in)
	if !slices.Equal(out.Layout.Missing, []string{"postgis 3.3.2", "vector 0.8.0"}) {
		t.Errorf("missing are %q", out.Layout.Missing)
	}
	if got := Assign(in.Want, out.Layout, out.Layout.Members[0], 0).Parameters[absentExtensions]; got != `"postgis 3.3.2","vector 0.8.0"` {
		t.Errorf("hosts are told %q", got)
	}
	var told []Problem
	for _, p := range out.Problems {
		if p.Kind == OlderExtensions || p.Kind == LacksExtensions {
			told = append(told, p)
		}
	}
	if len(told) != 1 || told[0].Host != "b" || told[0].Extensions != "postgis,vector" ||
		!strings.HasSuffix(told[0].Text, ": postgis 3.3.2 (others: 3.5.0), vector 0.8.0 (others: 0.10.0)") {
		t.Errorf("told was %+v", told)
	}
	out.Layout.Missing = nil
	if !reflect.DeepEqual(out.Layout, alike.Layout) {
		t.Errorf("it did something else: %+v", out.Layout)
	}
}

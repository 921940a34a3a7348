package extension

import (
	"maps"
	"slices"
	"testing"
)

// having is a host with these extensions, all of one version.
func having(names ...string) Installed {
	has := Installed{}
	for _, name := range names {
		has[name] = "1.0"
	}
	return has
}

func TestMissing(t *testing.T) {
	for _, test := range []struct {
		hosts []Installed
		want  []string
	}{
		{nil, nil},
		{[]Installed{having("hll", "rum"), having("hll", "rum")}, nil},
		{[]Installed{having("hll", "rum"), having("hll"), having("ip4r", "hll")}, []string{"ip4r", "rum"}},
		{[]Installed{having("hll", "citext", "log_fdw"), nil}, []string{"hll"}},
		{[]Installed{nil, nil}, nil},
		{[]Installed{having("hll"), {}}, []string{"hll"}},
	} {
		if got := Missing(test.hosts...); !slices.Equal(got, test.want) {
			t.Errorf("%v: %q, not %q", test.hosts, got, test.want)
		}
	}
}

func TestDiffering(t *testing.T) {
	for _, test := range []struct {
		name  string
		hosts []Installed
		want  map[string]string
	}{
		{"none", nil, nil},
		{"alike", []Installed{{"postgis": "3.3.2", "auto_explain": ""}, {"postgis": "3.3.2", "auto_explain": ""}}, nil},
		{"one is newer", []Installed{{"postgis": "3.5.0", "hll": "2.17"}, {"postgis": "3.3.2", "hll": "2.17"}}, map[string]string{"postgis": "3.3.2"}},
		{"three kinds", []Installed{{"vector": "0.8.0"}, {"vector": "0.10.0"}, {"vector": "0.7.4"}}, map[string]string{"vector": "0.7.4"}},
		{"one has none, one does not say", []Installed{{"vector": "0.8.0"}, {}, nil}, nil},
		{"the same, written differently", []Installed{{"pg_cron": "1.6"}, {"pg_cron": "1.06"}}, nil},
	} {
		if got := Differing(test.hosts...); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, not %v", test.name, got, test.want)
		}
	}
}

func TestCompare(t *testing.T) {
	sorted := []string{"", "1", "1.2", "1.4", "1.4-1", "1.4-2", "1.9", "1.10", "2.0.4", "3.3.2", "3.5.0", "3.5.0beta", "10", "99999999999999999999"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got, want := Compare(a, b), sign(i-j); got != want {
				t.Errorf("%q and %q: %d, not %d", a, b, got, want)
			}
		}
	}
}

func sign(n int) int { return max(-1, min(1, n)) }

package nft

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/edge/endpoint"
	"howdah/internal/testkit"
	"howdah/internal/testkit/golden"
)

// TestTable checks the text of the rules against golden files, which hold the endpoints and the
// transaction that makes them. The kernel checks the text, too.
func TestTable(t *testing.T) {
	golden.Each(t, func(t *testing.T, f *golden.File) {
		d, all := parseInput(t, f.Input)
		got := d.whole(all)
		f.Check(got)
		testkit.NeedRoot(t)
		if err := program(testkit.NeedProgram(t, "nft")).check(t.Context(), got); err != nil {
			t.Error(err)
		}
	})
}

// parseInput reads lines "listen target ... allow=network ..." and "masquerade".
func parseInput(t *testing.T, input string) (dialect, []endpoint.Endpoint) {
	t.Helper()
	d := dialect{table: tableName("golden")}
	var all []endpoint.Endpoint
	for _, line := range strings.Split(strings.TrimSpace(input), "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "masquerade":
			d.masquerade = true
		default:
			e := endpoint.Endpoint{Listen: netip.MustParseAddrPort(words[0])}
			for _, w := range words[1:] {
				if network, ok := strings.CutPrefix(w, "allow="); ok {
					e.Allow = append([]netip.Prefix{}, e.Allow...)
					if network != "nobody" {
						e.Allow = append(e.Allow, netip.MustParsePrefix(network))
					}
					continue
				}
				e.Targets = append(e.Targets, netip.MustParseAddrPort(w))
			}
			all = append(all, e)
		}
	}
	all, err := config("golden", "").Normal(all...)
	if err != nil {
		t.Fatal(err)
	}
	return d, all
}

func TestWithoutAnswered(t *testing.T) {
	const bare = "table ip x {\n\tset answered {\n\t\ttimeout 5s\n\t}\n\n\tmap single {\n\t\telements = { a : b,\n\t\t\t     c : d }\n\t}\n}\n"
	full := strings.Replace(bare, "timeout 5s\n", "timeout 5s\n\t\telements = { 127.0.0.1 . 1 expires 3s,\n\t\t\t     127.0.0.1 . 2 expires 4s }\n", 1)
	for name, listing := range map[string]string{"empty": bare, "filled": full} {
		if diff := cmp.Diff(bare, withoutAnswered(listing)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	if got := withoutAnswered("table ip x {\n}\n"); got != "table ip x {\n}\n" {
		t.Errorf("without the set: %q", got)
	}
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"a\nb", "a\nb", 0},
		{"a\nb", "b\na", 0},
		{"a\nb", "a\nc", 2},
		{"", "a\na", 3},
	} {
		if got := differences(c.a, c.b); got != c.want {
			t.Errorf("differences(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

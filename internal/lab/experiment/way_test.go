package experiment

import (
	"slices"
	"strings"
	"testing"
)

const ways = `
name: ways
title: {en: Ways}
question: {en: Ways}
factors: [{name: through, title: {en: Way}, levels: [direct]}]
runs: 1
each:
  - pgbench: {scripts: [{builtin: select-only}], through: $through, stale: 3, clients: 10, seconds: 1}
quick: {}
`

func TestWays(t *testing.T) {
	t.Parallel()
	for levels, expected := range map[string]struct {
		howdah, pool bool
		sessions     int
	}{"[direct]": {sessions: 16}, "[direct, reader]": {howdah: true, sessions: 16}, "[direct, pgpool]": {howdah: true, pool: true, sessions: 24}} {
		e, err := Read([]byte(strings.Replace(ways, "[direct]", levels, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(e.Requires(), NeedHowdah) != expected.howdah || e.PGPool() != expected.pool {
			t.Errorf("%s needs %q, pgpool %t", levels, e.Requires(), e.PGPool())
		}
		if n, err := e.Clients(); err != nil || n != expected.sessions {
			t.Errorf("%s: %d sessions, %v", levels, n, err)
		}
	}
}

func TestWaysThatCannotBe(t *testing.T) {
	t.Parallel()
	for change, reason := range map[string]string{
		"levels: [direct]=>levels: [proxy]":                `through is "proxy"`,
		"stale: 3=>stale: -1":                              "stale are -1 pairs",
		"stale: 3=>stale: 1001":                            "stale are 1001 pairs",
		"through: $through=>vacuum: true, through: reader": "standbys vacuum nothing",
		"pgbench: {scripts: [{builtin: select-only}], through: $through=>pgbench: {scripts: [{builtin: tpcb-like}], through: reader": "tpcb-like writes",
		"pgbench: {scripts: [{builtin: select-only}], through: $through, stale: 3, clients: 10, seconds: 1}=>" +
			"failover: {load: {scripts: [{builtin: select-only}], stale: 3, clients: 10, seconds: 1}, after: 1}": "counts no stale reads",
	} {
		before, after, _ := strings.Cut(change, "=>")
		text := strings.Replace(ways, before, after, 1)
		if text == ways {
			t.Fatalf("%s changes nothing", change)
		}
		if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

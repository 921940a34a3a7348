package experiment

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const withLoad = `
name: broken
title: {en: Broken}
question: {en: Broken}
factors: [{name: workload, title: {en: Load}, levels: [%s]}]
runs: 1
each:
  - fault: {kind: kill, before: 1, seconds: 2, after: 3, writers: 4, workload: $workload, scale: 7,
      load: {scripts: [{builtin: select-only, weight: 2}, {sql: SELECT 1}], clients: 5}, tpcc: {warehouses: 6, users: 9, seconds: 1}}
quick: {}
`

// What runs beside the ledger is a factor. What it needs is counted, and how long it runs follows from the
// fault.
func TestWorkloadsOfFaults(t *testing.T) {
	t.Parallel()
	for workload, c := range map[string]struct {
		clients int
		bytes   int64
		runs    string
	}{
		"ledger":  {4, 0, ""},
		"pgbench": {9, 7 * branchBytes, "load"},
		"tpcc":    {14, 6*warehouseBytes + itemsBytes, "tpcc"},
	} {
		e, err := Read(fmt.Appendf(nil, withLoad, workload))
		if err != nil {
			t.Fatal(err)
		}
		a, err := e.Arguments(e.Each[0], e.Settings()[0])
		if err != nil {
			t.Fatal(err)
		}
		f := a.Fault
		if (f.Load != nil) != (c.runs == "load") || (f.TPCC != nil) != (c.runs == "tpcc") || a.Seconds() != 6 {
			t.Errorf("%s: %+v, %d s", workload, f, a.Seconds())
		}
		if f.Load != nil && (f.Load.Seconds != 6 || f.Load.Protocol != "simple") || f.TPCC != nil && f.TPCC.Seconds != 6 {
			t.Errorf("%s: it runs %+v, %+v", workload, f.Load, f.TPCC)
		}
		clients, errClients := e.Clients()
		bytes, errBytes := e.Bytes()
		if errClients != nil || errBytes != nil || clients != c.clients || bytes != c.bytes {
			t.Errorf("%s: %d clients, %d bytes, %v, %v", workload, clients, bytes, errClients, errBytes)
		}
	}
	for _, bad := range []struct{ from, to string }{
		{"levels: [%s]", "levels: [flood]"},
		{"workload: $workload, ", ""}, // both
		{"[{builtin: select-only, weight: 2}, {sql: SELECT 1}]", "[]"},
		{"clients: 5", "clients: 5, transactions: 3"},
		{"clients: 5", "clients: 5, prefix: own_"},
		{"users: 9", "users: 0"},
		{"scale: 7", "scale: -1"},
		{"load: {", "lod: {"},
	} {
		text := strings.Replace(withLoad, bad.from, bad.to, 1)
		if strings.Contains(text, "%s") {
			text = fmt.Sprintf(text, "pgbench, tpcc")
		}
		if _, err := Read([]byte(text)); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", bad.to, err)
		}
	}
}

// What is made for each point is counted as often; what is used again, once.
func TestWorkBesidesLoads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want Work
	}{
		"each workload anew":   {fmt.Sprintf(withLoad, "ledger, pgbench, tpcc"), Work{Built: 7*branchBytes + 6*warehouseBytes + itemsBytes}},
		"warehouses once":      {ordered, Work{Built: 10*warehouseBytes + itemsBytes}},
		"fresh warehouses":     {strings.Replace(ordered, "ramp_up: 5", "fresh: true", 1), Work{Built: 2 * (10*warehouseBytes + itemsBytes)}},
		"tables of each point": {strings.Replace(ordered, "  - tpcc:", "  - restore: {}\n  - init: {scale: 3}\n  - tpcc:", 1), Work{Built: 6*branchBytes + 10*warehouseBytes + itemsBytes, Restores: 2}},
	} {
		e, err := Read([]byte(c.text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := e.Work(); err != nil || got != c.want {
			t.Errorf("%s: %+v, want %+v, %v", name, got, c.want, err)
		}
	}
}

package experiment

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const managed = `
name: managed
title: {en: Managed}
question: {en: Managed}
server: {class: $class, storage: 100, iops: 1000, multi_az: true, standbys: 1, parameters: {autovacuum: "0"}}
factors: [{name: class, title: {en: Class}, levels: [db.m3.medium, db.m3.large]}]
runs: 1
each: [{sql: {text: SELECT 1}}]
quick: {}
`

func TestWantedServers(t *testing.T) {
	t.Parallel()
	e, err := Read([]byte(managed))
	if err != nil {
		t.Fatal(err)
	}
	w, err := e.Wanted(Setting{"class": "db.m3.large"})
	want := Wanted{Class: "db.m3.large", Storage: 100, IOPS: 1000, MultiAZ: true, Standbys: 1, Parameters: map[string]string{"autovacuum": "0"}}
	if err != nil || !reflect.DeepEqual(w, want) {
		t.Errorf("%+v, %v", w, err)
	}
	other := want
	other.Parameters = map[string]string{"autovacuum": "1"}
	if !w.Same(want) || w.Same(other) || w.Same(Wanted{}) {
		t.Error("servers are not compared")
	}
	for server, want := range map[string]Wanted{
		"{}":                                   {Class: defaultClass, Storage: defaultStorage},
		"{nodes: 3}":                           {Class: defaultClass, Storage: defaultStorage, Standbys: 2},
		"{cluster: true, nodes: 2, warm: yes}": {Class: defaultClass, Storage: defaultStorage, Standbys: 1, Cluster: true, Warm: true},
		"{multi_az: true, warm: true}":         {Class: defaultClass, Storage: defaultStorage, MultiAZ: true, Warm: true},
	} {
		e, err := Read([]byte(strings.Replace(managed, "{class: $class, storage: 100, iops: 1000, multi_az: true, standbys: 1, parameters: {autovacuum: \"0\"}}", server, 1)))
		if err != nil {
			t.Errorf("%s: %v", server, err)
			continue
		}
		if w, err := e.Wanted(e.Settings()[0]); err != nil || !w.Same(want) {
			t.Errorf("%s: %+v, %v", server, w, err)
		}
	}
}

func TestServersThatCannotBe(t *testing.T) {
	t.Parallel()
	for change, words := range map[string]string{
		"class: $class=>class: $size":                   "nothing has the name size",
		"standbys: 1=>standbys: 16":                     "standbys are 16",
		"standbys: 1=>standbys: 1, nodes: 2":            "excludes standbys",
		"standbys: 1=>nodes: 1.5":                       "nodes is a number",
		"storage: 100=>storage: 2":                      "storage is 2 GiB",
		"storage: 100=>storage: 10":                     "iops of its own",
		"iops: 1000=>iops: 5":                           "iops are 5",
		"iops: 1000=>iops: many":                        "cannot unmarshal",
		"iops: 1000=>backups: 40":                       "kept for 40 days",
		"multi_az: true=>multi_az: true, cluster: true": "neither multi_az nor iops",
		"multi_az: true=>warm: true":                    "warm needs multi_az",
		"multi_az: true=>multi: true":                   "unknown field",
	} {
		from, to, _ := strings.Cut(change, "=>")
		_, err := Read([]byte(strings.Replace(managed, from, to, 1)))
		if !errors.Is(err, ErrForm) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

func TestWhatAnExperimentRequires(t *testing.T) {
	t.Parallel()
	for each, want := range map[string][]string{
		"{sql: {text: SELECT 1}}":                            {NeedHowdah},
		"{fault: {kind: kill}}":                              {NeedFaults, NeedHowdah},
		"{crash: {table: pgbench_accounts, optional: true}}": {NeedHowdah},
		"{crash: {table: pgbench_accounts}}":                 {NeedFaults, NeedHowdah},
	} {
		e, err := Read([]byte(strings.Replace(managed, "{sql: {text: SELECT 1}}", each, 1)))
		if err != nil {
			t.Errorf("%s: %v", each, err)
			continue
		}
		if got := e.Requires(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", each, got)
		}
	}
	plain := strings.Replace(managed, "class: $class, ", "", 1)
	e, err := Read([]byte(strings.Replace(plain, "runs: 1", "runs: 1\nneeds: [writes]", 1)))
	if err != nil || !slices.Equal(e.Requires(), []string{NeedWrites}) {
		t.Errorf("%q, %v", e.Requires(), err)
	}
	if e.Restores() {
		t.Error("nothing is restored")
	}
}

// What breaks something is known, also where a target need not be able to.
func TestBreaks(t *testing.T) {
	t.Parallel()
	all, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if want := slices.Contains([]string{"drill", "e3"}, e.Name); e.Breaks() != want {
			t.Errorf("%s: %t", e.Name, !want)
		}
	}
	if read(t).Breaks() {
		t.Error("it breaks something")
	}
	if e := (&Experiment{Each: []Step{{"crash": {"optional": true}}}}); !e.Breaks() || len(e.Requires()) > 0 {
		t.Errorf("it needs %q", e.Requires())
	}
}

func TestServerSteps(t *testing.T) {
	t.Parallel()
	with := func(step string) error {
		_, err := Read([]byte(strings.Replace(managed, "{sql: {text: SELECT 1}}", step, 1)))
		return err
	}
	for _, step := range []string{
		"{restore: {figure: restore_s}}", "{reboot: {}}", "{crash: {table: accounts}}", "{bulk_load: {rows: 5, figure: load_s}}",
		"{vacuum: {table: accounts, figure: vacuum_s}}", "{buffers: {table: accounts, within: 5}}", "{fault: {kind: lost-host, seconds: 5}}",
		"{failover: {load: {scripts: [{builtin: select-only}], clients: 1, seconds: 5}, after: 5}}",
	} {
		if err := with(step); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
	for step, words := range map[string]string{
		"{restore: {figures: x}}":            "unknown field",
		"{crash: {table: \"a; DROP\"}}":      "no plain name",
		"{crash: {}}":                        "no plain name",
		"{bulk_load: {rows: 0, figure: x}}":  "rows are 0",
		"{bulk_load: {rows: 5}}":             "name of a figure",
		"{vacuum: {table: accounts}}":        "name of a figure",
		"{fault: {kind: flood}}":             "no fault \"flood\"",
		"{fault: {kind: kill, writers: -1}}": "above 0",
		"{failover: {load: {scripts: [{builtin: select-only}], clients: 1, seconds: 5}}}":                "seconds before and after",
		"{failover: {load: {scripts: [{builtin: select-only}], clients: 1, transactions: 5}, after: 5}}": "seconds before and after",
		"{failover: {load: {scripts: [], clients: 1, seconds: 5}, after: 5}}":                            "no script",
		"{flood: {}}": "there is no such step",
	} {
		if err := with(step); !errors.Is(err, ErrForm) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", step, err)
		}
	}
	cluster := strings.NewReplacer("iops: 1000, multi_az: true", "cluster: true", "{sql: {text: SELECT 1}}", "{restore: {}}").Replace(managed)
	if _, err := Read([]byte(cluster)); !errors.Is(err, ErrForm) || !strings.Contains(err.Error(), "a cluster cannot be restored") {
		t.Errorf("restore a cluster: %v", err)
	}
	e, err := Read([]byte(strings.Replace(managed, "{sql: {text: SELECT 1}}", "{fault: {kind: kill, before: 1}}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.Arguments(e.Each[0], e.Settings()[0])
	if err != nil || a.Fault.Before != 1 || a.Fault.Writers != faultWriters || a.Fault.Within != faultWithin || a.Seconds() != 1+faultSeconds+faultAfter {
		t.Errorf("%+v, %v", a.Fault, err)
	}
	if clients, err := e.Clients(); err != nil || clients != faultWriters {
		t.Errorf("%d, %v", clients, err)
	}
}

package experiment

import (
	"reflect"
	"strings"
	"testing"
)

const ordered = `
name: ordered
title: {en: Ordered}
question: {en: "How many?"}
values: {seconds: 30}
factors:
  - {name: users, title: {en: Users}, levels: [1, 16]}
runs: 1
each:
  - tpcc: {warehouses: 10, users: $users, seconds: $seconds, ramp_up: 5}
quick: {values: {seconds: 2}}
`

func TestTPCC(t *testing.T) {
	t.Parallel()
	e, err := Read([]byte(ordered))
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.Arguments(e.Each[0], Setting{"users": 16.0})
	want := &TPCC{Warehouses: 10, Users: 16, Mode: "compatible", Calls: "procedures", Reach: "usual", RampUp: 5, Seconds: 30}
	if err != nil || !reflect.DeepEqual(a.TPCC, want) {
		t.Errorf("%+v, %v", a.TPCC, err)
	}
	// One more session reads the counters.
	if n, err := e.Clients(); err != nil || n != 17 {
		t.Errorf("%d clients, %v", n, err)
	}
	if n, err := e.Seconds(e.Settings()[0]); err != nil || n != 35 {
		t.Errorf("%d seconds, %v", n, err)
	}
}

func TestTPCCThatCannotBe(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"warehouses: 10=>warehouses: 0":                                   "warehouses are 0",
		"warehouses: 10=>warehouses: 100001":                              "warehouses are 100001",
		"levels: [1, 16]=>levels: [0]":                                    "users are 0",
		"levels: [1, 16]=>levels: [1025]":                                 "users are 1025",
		"ramp_up: 5=>ramp_up: -1":                                         "ramp_up",
		"seconds: 2}=>seconds: 0}":                                        "seconds above 0",
		"ramp_up: 5=>mode: hammer":                                        `mode is "hammer"`,
		"ramp_up: 5=>calls: both":                                         `calls is "both"`,
		"ramp_up: 5=>workers: 257":                                        "workers are 257",
		"ramp_up: 5=>reach: far":                                          `reach is "far"`,
		"ramp_up: 5=>reach: away":                                         "needs the mode specification",
		"warehouses: 10=>mode: specification, reach: away, warehouses: 1": "two warehouses",
		"ramp_up: 5=>keying: 5":                                           "keying",
		"ramp_up: 5=>think: true":                                         "think",
		"warehouses: 10=>warehouses: $houses":                             "nothing has the name houses",
	} {
		from, to, _ := strings.Cut(change, "=>")
		if !strings.Contains(ordered, from) {
			t.Fatalf("%q is not there", from)
		}
		if _, err := Read([]byte(strings.Replace(ordered, from, to, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestHowMuchRoom(t *testing.T) {
	t.Parallel()
	e := read(t) // scale 2
	if n, err := e.Bytes(); err != nil || n != 2*branchBytes {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := e.Seconds(e.Settings()[0]); err != nil || n != 5 {
		t.Errorf("%d seconds, %v", n, err)
	}
	e, err := Read([]byte(ordered))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := e.Bytes(); err != nil || n != 10*warehouseBytes+itemsBytes {
		t.Errorf("%d, %v", n, err)
	}
}

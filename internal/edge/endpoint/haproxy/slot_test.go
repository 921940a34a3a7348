package haproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func addr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 1, byte(i)}), 5433)
}

func addrs(numbers ...int) []netip.AddrPort {
	var all []netip.AddrPort
	for _, n := range numbers {
		all = append(all, addr(n))
	}
	return all
}

func TestCommands(t *testing.T) {
	fresh := slot{name: "s3", addr: nowhere}
	for name, c := range map[string]struct {
		now  state
		to   []netip.AddrPort
		want []string
	}{
		"nothing to do": {state{true, []slot{{"s1", addr(1), true, 7}}}, addrs(1), nil},
		"failover keeps the old slot": {
			state{true, []slot{{"s1", addr(1), true, 7}, fresh}}, addrs(2),
			[]string{"set server targets/s3 addr 127.0.1.2 port 5433", "set server targets/s3 state ready", "set server targets/s1 state maint"},
		},
		"back to a slot that still has sessions": {
			state{true, []slot{{"s1", addr(1), false, 7}, {"s2", addr(2), true, 0}}}, addrs(1),
			[]string{"set server targets/s1 state ready", "set server targets/s2 state maint"},
		},
		"an idle slot is used again, a busy one is not": {
			state{true, []slot{{"s1", addr(1), false, 1}, {"s2", addr(2), false, 0}, {"s3", addr(3), true, 0}}}, addrs(4),
			[]string{"set server targets/s2 addr 127.0.1.4 port 5433", "set server targets/s2 state ready", "set server targets/s3 state maint"},
		},
		"no target closes the door first": {
			state{true, []slot{{"s1", addr(1), true, 7}}}, nil,
			[]string{"disable frontend clients", "set server targets/s1 state maint"},
		},
		"a target opens it last": {
			state{false, []slot{fresh}}, addrs(1),
			[]string{"set server targets/s3 addr 127.0.1.1 port 5433", "set server targets/s3 state ready", "enable frontend clients"},
		},
		"one reader more": {
			state{true, []slot{{"s1", addr(1), true, 1}, {"s2", addr(2), true, 1}, fresh}}, addrs(1, 2, 3),
			[]string{"set server targets/s3 addr 127.0.1.3 port 5433", "set server targets/s3 state ready"},
		},
		"a slot another target will need is left": {
			state{true, []slot{{"s1", addr(2), false, 0}, fresh}}, addrs(1, 2),
			[]string{"set server targets/s3 addr 127.0.1.1 port 5433", "set server targets/s3 state ready", "set server targets/s1 state ready"},
		},
	} {
		got, err := c.now.commands(c.to)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	full := state{true, []slot{{"s1", addr(1), true, 1}, {"s2", addr(2), false, 1}}}
	if got, err := full.commands(addrs(3)); !errors.Is(err, errSlots) {
		t.Errorf("without a free slot: %q, %v", got, err)
	}
}

func TestLeads(t *testing.T) {
	s := state{true, []slot{{"s1", addr(2), true, 0}, {"s2", addr(9), false, 3}, {"s3", addr(1), true, 0}}}
	shut := state{false, []slot{{"s1", addr(2), false, 0}}}
	for name, c := range map[string]struct {
		now  state
		to   []netip.AddrPort
		want bool
	}{
		"as it is":       {s, addrs(1, 2), true},
		"one less":       {s, addrs(1), false},
		"one more":       {s, addrs(1, 2, 9), false},
		"nowhere, shut":  {shut, nil, true},
		"nowhere, open":  {state{true, shut.slots}, nil, false},
		"shut but ready": {state{false, s.slots}, addrs(1, 2), false},
	} {
		if got := c.now.leads(c.to); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestShutdown(t *testing.T) {
	s := state{true, []slot{{"s1", addr(1), true, 2}, {"s2", addr(2), true, 1}, {"s3", addr(1), false, 3}, {"s4", addr(1), false, 0}}}
	got, n := s.shutdown(addr(1))
	want := []string{"shutdown sessions server targets/s1", "shutdown sessions server targets/s3"}
	if diff := cmp.Diff(want, got); diff != "" || n != 5 {
		t.Errorf("%d sessions: -want +got:\n%s", n, diff)
	}
}

func TestParseState(t *testing.T) {
	const head = "# pxname,svname,scur,status,addr,\n"
	got, err := parseState(head +
		"GLOBAL,FRONTEND,1,OPEN,,\n" +
		"clients,FRONTEND,4,STOP,,\n" +
		"targets,s1,3,no check,127.0.1.1:5433,\n" +
		"targets,s2,0,MAINT,127.0.0.1:1,\n\n")
	want := state{false, []slot{{"s1", addr(1), true, 3}, {"s2", nowhere, false, 0}}}
	compare := cmp.Options{cmp.AllowUnexported(state{}, slot{}), cmpopts.EquateComparable(netip.AddrPort{})}
	if diff := cmp.Diff(want, got, compare); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	for name, text := range map[string]string{
		"empty":      "",
		"no columns": "# a,b\n1,2\n",
		"no address": head + "targets,s1,0,MAINT,,\n",
		"no number":  head + fmt.Sprintf("targets,s1,x,MAINT,%s,\n", nowhere),
		"no table":   "Permission denied\n",
	} {
		if s, err := parseState(text); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

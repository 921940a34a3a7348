package haproxy

import (
	"encoding/csv"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"howdah/internal/edge/endpoint"
)

// slot is one server of the proxy's backend.
type slot struct {
	name     string
	addr     netip.AddrPort
	ready    bool // takes new connections
	sessions int
}

// state is what a proxy does now, as the proxy itself says.
type state struct {
	open  bool // takes connections; else they are refused
	slots []slot
}

// errSlots says that there are more targets than slots, counting old targets that still have
// sessions.
var errSlots = errors.New("no slot left for a target: cut the sessions of old ones")

// show asks for everything that a state holds: frontends and servers of all proxies.
const show = "show stat -1 5 -1"

// parseState reads the answer to show.
func parseState(text string) (state, error) {
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(strings.TrimSpace(text), "# "))).ReadAll()
	if err != nil {
		return state{}, fmt.Errorf("read the state of a proxy: %w", err)
	}
	if len(rows) == 0 {
		return state{}, errors.New("read the state of a proxy: empty")
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, name := range []string{"pxname", "svname", "status", "scur", "addr"} {
		if _, ok := column[name]; !ok {
			return state{}, fmt.Errorf("read the state of a proxy: no column %s", name)
		}
	}
	var s state
	for _, row := range rows[1:] {
		cell := func(name string) string { return row[column[name]] }
		switch {
		case cell("pxname") == frontend && cell("svname") == "FRONTEND":
			s.open = cell("status") == "OPEN"
		case cell("pxname") == backend:
			one, err := parseSlot(cell)
			if err != nil {
				return state{}, err
			}
			s.slots = append(s.slots, one)
		}
	}
	return s, nil
}

func parseSlot(cell func(string) string) (slot, error) {
	addr, err := netip.ParseAddrPort(cell("addr"))
	if err != nil {
		return slot{}, fmt.Errorf("read slot %s: %w", cell("svname"), err)
	}
	sessions, err := strconv.Atoi(cell("scur"))
	if err != nil {
		return slot{}, fmt.Errorf("read slot %s: %w", cell("svname"), err)
	}
	ready := !strings.HasPrefix(cell("status"), "MAINT")
	return slot{cell("svname"), addr, ready, sessions}, nil
}

// leads reports whether s is as it should be for an endpoint with these targets.
func (s state) leads(targets []netip.AddrPort) bool {
	if s.open != (len(targets) > 0) {
		return false
	}
	var ready []netip.AddrPort
	for _, x := range s.slots {
		if x.ready {
			ready = append(ready, x.addr)
		}
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	return slices.Equal(ready, targets)
}

// commands returns what turns s into a proxy that leads to targets. A slot with sessions keeps its
// address, so that Cut finds them by it. New targets are ready before old ones stop. The frontend
// opens last and closes first.
func (s state) commands(targets []netip.AddrPort) ([]string, error) {
	var cmds []string
	if len(targets) == 0 && s.open {
		cmds = append(cmds, "disable frontend "+frontend)
	}
	used := map[string]bool{}
	for _, t := range targets {
		x, err := s.slotFor(t, targets, used)
		if err != nil {
			return nil, err
		}
		used[x.name] = true
		server := "set server " + backend + "/" + x.name
		if x.addr != t {
			cmds = append(cmds, fmt.Sprintf("%s addr %s port %d", server, t.Addr(), t.Port()))
		}
		if !x.ready {
			cmds = append(cmds, server+" state ready")
		}
	}
	for _, x := range s.slots {
		if x.ready && !used[x.name] {
			cmds = append(cmds, "set server "+backend+"/"+x.name+" state maint")
		}
	}
	if len(targets) > 0 && !s.open {
		cmds = append(cmds, "enable frontend "+frontend)
	}
	return cmds, nil
}

// slotFor prefers the slot that already has the address. Otherwise it takes one without sessions
// that no target has. For a target on loopback it takes a slot meant for such targets.
func (s state) slotFor(t netip.AddrPort, targets []netip.AddrPort, used map[string]bool) (slot, error) {
	for _, x := range s.slots {
		if x.addr == t && !used[x.name] {
			return x, nil
		}
	}
	free := func(x slot) bool {
		return x.sessions == 0 && !x.ready && !used[x.name] && !slices.Contains(targets, x.addr)
	}
	for _, near := range []bool{true, false} {
		for _, x := range s.slots {
			if strings.HasPrefix(x.name, nearby) == near && (!near || endpoint.Local(t.Addr())) && free(x) {
				return x, nil
			}
		}
	}
	return slot{}, fmt.Errorf("lead to %s: %w", t, errSlots)
}

// shutdown returns the commands that end the sessions to target, and how many sessions those are.
func (s state) shutdown(target netip.AddrPort) (commands []string, sessions int) {
	for _, x := range s.slots {
		if x.addr == target && x.sessions > 0 {
			commands = append(commands, fmt.Sprintf("shutdown sessions server %s/%s", backend, x.name))
			sessions += x.sessions
		}
	}
	return commands, sessions
}

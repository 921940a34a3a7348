package etcdgate

import (
	"encoding/json"
	"strings"

	"howdah/internal/state"
)

// said is what values say about their writer and their subject. Readers believe it, so it has to
// agree with the key, which was checked. It is decoded as readers decode it: the fields have the
// same names, wherever they occur.
type said struct {
	Name, Host, Case, Member, Database, ID, Route, Edge *string
	Assignment                                          *struct{ ID string }
}

// agrees reports whether a value may be written to a key by the agent of this host. If host is "",
// another caller writes.
func agrees(n need, host string) bool {
	root, rest := family(string(n.Key))
	if root == "" || n.ignoresValue {
		return true
	}
	var s said
	if root == state.RunsRoot || root == state.AttemptRoot || root == state.CatalogueRoot {
		return true // nobody reads of whom they are
	}
	if json.Unmarshal(n.value, &s) != nil {
		return false
	}
	first, second, _ := strings.Cut(rest, "/")
	is := func(field *string, want string) bool { return field == nil || *field == want }
	by := func(field *string) bool { return host == "" || is(field, host) }
	switch root {
	case state.HostRoot:
		return s.Name != nil && *s.Name == first
	case state.EdgeRoot:
		return is(s.Name, first)
	case state.HoldingRoot:
		return is(s.Host, first) && (second == "" || s.Assignment == nil || s.Assignment.ID == second)
	case state.ReportRoot:
		return is(s.Host, first) && is(s.ID, second)
	case state.JobReportRoot:
		return is(s.Name, second)
	case state.ResultRoot:
		return is(s.ID, rest)
	case state.WitnessRoot:
		return is(s.Case, first) && s.Host != nil && *s.Host == second
	case state.CutRoot:
		return is(s.Case, first) && is(s.Member, second) && by(s.Host)
	case state.DeathRoot:
		return is(s.Database, first) && is(s.Member, second) && by(s.Host)
	case state.PleaRoot, state.PassedRoot, state.TimelineRoot, state.IncidentRoot:
		return is(s.Database, first)
	case state.SwitchRoot:
		return is(s.Database, second)
	case state.WayRoot:
		i := strings.LastIndexByte(rest, '/')
		return is(s.Route, rest[:i]) && is(s.Edge, rest[i+1:])
	}
	return true
}

// family returns the root of a key of ours, and what follows. It returns "" for Patroni's keys.
func family(key string) (root, rest string) {
	tail, ours := strings.CutPrefix(key, state.Root)
	name, rest, several := strings.Cut(tail, "/")
	if !ours || !several {
		return "", ""
	}
	return state.Root + name + "/", rest
}

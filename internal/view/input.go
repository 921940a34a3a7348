package view

import (
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// Leader is the member of a database that has Patroni's leader key; "": none has.
func Leader(cache *state.Cache, database string) string {
	value, _, _ := cache.Raw(patroni.LeaderKey(database))
	return patroni.MemberName(string(value))
}

// Sync is what Patroni says of a database's standbys in sync. One that cannot be read names
// none.
func Sync(cache *state.Cache, database string) patroni.Sync {
	value, _, _ := cache.Raw(patroni.SyncKey(database))
	s, err := patroni.ParseSync(value)
	if err != nil {
		return patroni.Sync{}
	}
	return s
}

// Input is what the planner decides a database's next step by, as far as the state of that
// database alone says it. Now, Hosts, Policy, Ways, OwnNames and Keys are the caller's to add.
func Input(cache *state.Cache, want plan.Database, layout plan.Layout) plan.Input {
	in := plan.Input{
		Want: want, Layout: layout, Leader: Leader(cache, want.ID), Sync: Sync(cache, want.ID), Unborn: unborn(cache, want.ID),
		Reports: map[string]member.Report{}, Applied: map[string]int64{}, Assigned: map[string]int64{}, Results: map[string]member.Result{},
		Making: map[string]bool{}, Positions: map[string]int64{}, Behind: map[string]bool{}, PendingRestart: map[string]bool{}, Growing: map[string]bool{},
	}
	_, config, _ := cache.Raw(patroni.ConfigKey(want.ID))
	for _, m := range layout.Members {
		id := member.ID(want.ID, m.Name)
		if report, err := state.Load[member.Report](cache, state.Report(m.Host, id)); err == nil {
			in.Reports[id] = report.Value
		}
		if a, err := state.View[member.Assignment](cache, state.Assign(m.Host, id)); err == nil {
			in.Assigned[id] = a.Value.Generation
		}
		if s, ok := patroni.FindMember(cache.Raw, want.ID, m.Name); ok {
			in.Behind[id] = s.Shared() > 0 && s.Shared() < config
			in.Applied[id], in.Positions[id], in.Making[id] = s.Generation(), s.Location, s.Making()
			// What a primary said before it was restarted as a standby holds no more.
			in.PendingRestart[id] = s.PendingRestart && (m.Name == in.Leader || s.Role == "replica")
			in.Growing[id] = in.PendingRestart[id] && plan.Grows(s.Differences)
		}
	}
	for _, result := range state.LoadAll[member.Result](cache, state.ResultRoot+want.ID+"/") {
		in.Results[result.Value.ID] = result.Value
	}
	return in
}

// unborn: someone began to bootstrap, and no data have been made yet that count.
func unborn(cache *state.Cache, database string) bool {
	value, _, ok := cache.Raw(patroni.InitializeKey(database))
	return ok && len(value) == 0
}

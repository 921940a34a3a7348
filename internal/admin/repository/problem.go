package repository

import (
	"maps"
	"slices"

	"howdah/internal/admin"
	"howdah/internal/model/backup"
	"howdah/internal/state"
)

// Problems returns what is wrong with repositories. none says why the home has none, if it has
// none; "": it is about to get one. away has the repositories that the control plane cannot work
// with, and why, and low those in which little is free; nil: there are none. Nobody keeps the keys of a home that may be wiped at any moment: disposable.
func Problems(cache *state.Cache, disposable bool, none func() string, away, low func() map[string]string) []admin.Problem {
	all := state.LoadAll[backup.Repository](cache, state.RepositoryRoot)
	if len(all) == 0 {
		why := none()
		if why == "" {
			return nil
		}
		return []admin.Problem{{
			Code: admin.ProblemNoRepository, Subject: "backup", Command: "howdah repository add NAME --s3 URL --bucket BUCKET",
			Text: "there is no repository, so no database is backed up: " + why,
		}}
	}
	held := map[string]bool{}
	for _, b := range state.LoadAll[backup.Backup](cache, state.BackupRoot) {
		held[b.Value.Repository] = true
	}
	var problems []admin.Problem
	for _, r := range all {
		// A key that opens nothing yet need not be kept.
		if r.Value.Encrypted() && r.Value.Exported.IsZero() && held[r.Value.Name] && !disposable {
			problems = append(problems, admin.Problem{
				Code: admin.ProblemKeyAtHome, Subject: "repository " + r.Value.Name, Command: "howdah repository key export " + r.Value.Name,
				Text: "its key is in this home alone: whoever loses the home loses all backups; export the key, and keep it elsewhere",
			})
		}
	}
	// known returns the repositories of those that there still are, sorted.
	known := func(found map[string]string) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(name string) bool {
			return !slices.ContainsFunc(all, func(r state.Record[backup.Repository]) bool { return r.Value.Name == name })
		})
	}
	troubles := away()
	for _, name := range known(troubles) {
		problems = append(problems, admin.Problem{
			Code: admin.ProblemRepository, Subject: "repository " + name, Command: "howdah repository check " + name,
			Text: "the control plane cannot work with it: " + troubles[name],
		})
	}
	if low == nil {
		return problems
	}
	scarce := low()
	for _, name := range known(scarce) {
		problems = append(problems, admin.Problem{
			Code: admin.ProblemLowRoom, Subject: "repository " + name, Command: "howdah repository show " + name,
			Text: scarce[name] + ": no automated backup begins, so that WAL still goes in; make room there",
		})
	}
	return problems
}

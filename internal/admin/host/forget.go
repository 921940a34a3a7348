package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/aws/front"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// forget drops a host that will not come back. Its members are then rebuilt elsewhere at once. If
// it ever returns, the old copies are deleted.
func (s *service) forget(ctx context.Context, _ front.Call, in admin.HostRequest) (admin.Nothing, error) {
	return admin.Nothing{}, s.Retry(ctx, func() error {
		if err := s.known(in.Host); err != nil {
			if s.held.Awaited(in.Host) || s.held.Told(in.Host) {
				return s.Commit(ctx, state.Put(state.Gone(in.Host), s.now()))
			}
			return err
		}
		live, err := state.Load[member.Liveness](s.Cache, state.Live(in.Host))
		if err == nil && live.Value.Alive {
			return admin.NewError(admin.CodeHostAlive, "The host "+in.Host+" is alive.",
				"empty it with howdah host drain "+in.Host+", stop its agent, and try again")
		}
		if err := s.onlyCopies(in.Host); err != nil {
			return err
		}
		var gone []state.Op
		if len(s.Cache.Keys(state.HeldRoot)) > 0 {
			// Other hosts still know it. What it said stays, because a copy of it may be the
			// newest.
			gone = append(gone, state.Put(state.Gone(in.Host), s.now()))
		}
		// This fails if the host was heard again meanwhile. Assignments stay: they tell a host that
		// returns what to delete.
		return s.Commit(ctx, append(gone, state.Unchanged(state.Live(in.Host), live.Revision),
			state.Delete(state.Host(in.Host)), state.Delete(state.Live(in.Host)), state.Delete(state.Drain(in.Host)), state.Delete(state.Attempt(in.Host)),
			state.DeletePrefix(state.Report(in.Host, "")), state.DeletePrefix(state.TaskPrefix(in.Host)))...)
	})
}

// onlyCopies refuses while only this host has everything that a database acknowledged: no other
// member serves as primary.
func (s *service) onlyCopies(host string) error {
	var held []string
	for _, d := range s.databases.All() {
		if d.Want.State == member.Absent {
			continue
		}
		if _, _, waits := s.Cache.Raw(state.Hold(d.Want.ID)); waits {
			here := slices.ContainsFunc(d.Layout.Members, func(m plan.Placed) bool { return m.Host == host })
			if here && !s.held.Elsewhere(d.Want.ID, host) {
				return admin.NewError(admin.CodeOnlyCopy, "No other host has told of data of "+d.Common.Name+" since the home was restored.",
					"start the agents of the others, and see howdah home held; or bring the host back; or, if the data are lost: howdah db delete "+d.Common.Name)
			}
			continue
		}
		if !d.Layout.Created {
			continue
		}
		here := slices.ContainsFunc(d.Layout.Members, func(m plan.Placed) bool { return m.Host == host && !m.Leaving })
		if here && !s.survives(d, host) {
			held = append(held, d.Common.Name)
		}
	}
	if len(held) == 0 {
		return nil
	}
	return admin.NewError(admin.CodeOnlyCopy,
		fmt.Sprintf("The host %s has the only complete copy of %s.", host, strings.Join(held, ", ")),
		"bring the host back; or, if the data are lost, delete what it holds first: howdah db delete "+held[0])
}

// survives reports whether another host has the primary. While the database is stopped, it reports
// whether another host has the copy that was the last primary.
func (s *service) survives(d database.Subject, host string) bool {
	if primary, ok := d.Primary(); ok {
		return primary.Host != host
	}
	last, err := state.Load[member.Lead](s.Cache, state.Lead(d.Want.ID))
	return err == nil && d.Want.State == member.Stopped && last.Value.Host != host && d.Alive[last.Value.Host]
}

package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// drainOrder is what a drain key holds: that it is there counts.
type drainOrder struct {
	Since time.Time `json:"since"`
}

// adminDrain asks for a host to be emptied, and answers what moves where. Asked
// again it answers how far that is. It is idempotent.
func (s *Server) adminDrain(ctx context.Context, c front.Call, in admin.DrainRequest) (admin.DrainAnswer, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return admin.DrainAnswer{}, err
	}
	if err := s.knownHost(in.Host); err != nil {
		return admin.DrainAnswer{}, err
	}
	_, _, draining := s.Cache.Raw(state.Drain(in.Host))
	if !in.DryRun && !draining {
		if err := s.client.Commit(ctx, state.Put(state.Drain(in.Host), drainOrder{Since: c.Now})); err != nil {
			return admin.DrainAnswer{}, err
		}
		draining = true
	}
	return admin.DrainAnswer{Draining: draining, Moves: s.moves(in.Host)}, nil
}

// adminUndrain lets a host have members again; those that have left stay where
// they are. It is idempotent.
func (s *Server) adminUndrain(ctx context.Context, _ front.Call, in admin.HostRequest) (admin.Nothing, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return admin.Nothing{}, err
	}
	if err := s.knownHost(in.Host); err != nil {
		return admin.Nothing{}, err
	}
	return admin.Nothing{}, s.client.Commit(ctx, state.Delete(state.Drain(in.Host)))
}

func (s *Server) knownHost(name string) error {
	if _, _, known := s.Cache.Raw(state.Host(name)); known {
		return nil
	}
	names := s.Cache.Names(state.HostRoot)
	hint := "no host has joined yet"
	if len(names) > 0 {
		hint = "there are " + strings.Join(names, ", ")
	}
	return admin.NewError(admin.CodeHostNotFound, fmt.Sprintf("There is no host %q.", name), hint)
}

// moves are the members that a drain takes, or is taking, off a host: the
// planner is asked what it would do, and nothing is done.
func (s *Server) moves(host string) []admin.Move {
	moves := []admin.Move{}
	for _, d := range s.subjects() {
		if !slices.ContainsFunc(d.Layout.Members, func(m plan.Placed) bool { return m.Host == host }) {
			continue
		}
		in, wanted := s.planInput(d)
		if !wanted {
			continue
		}
		for i := range in.Hosts {
			in.Hosts[i].Draining = in.Hosts[i].Draining || in.Hosts[i].Name == host
		}
		out := plan.Next(in)
		for _, m := range d.Layout.Members {
			if m.Host == host {
				moves = append(moves, move(d, m, out))
			}
		}
	}
	return moves
}

// move says where one member goes by a decision of the planner.
func move(d subject, m plan.Placed, out plan.Output) admin.Move {
	v := admin.Move{Database: d.common.Name, ResourceID: d.common.ResourceID, Member: m.Name, Role: d.role(m)}
	if steps := d.Layout.Steps; len(steps) > 0 {
		v.Step = steps[len(steps)-1].Name
	}
	if next, ok := replacement(out.Layout, m); ok {
		v.To = next.Host
	}
	gone := !slices.ContainsFunc(out.Layout.Members, func(n plan.Placed) bool { return n.Name == m.Name && !n.Leaving })
	switch {
	case v.To != "" || gone:
	case d.Want.State == member.Stopped:
		v.Problem = "the database is stopped: its members move when it is started"
	default:
		v.Problem = plan.Texts(out.Problems)
		if v.Problem == "" {
			v.Problem = "the planner is busy with something else"
		}
	}
	return v
}

// replacement is the member that takes the place of one that goes. Members of one
// seat are alike: the newest are those that were added for the ones that go.
func replacement(l plan.Layout, old plan.Placed) (plan.Placed, bool) {
	var leave, stay []plan.Placed
	for _, m := range l.Members {
		switch {
		case m.Seat != old.Seat:
		case m.Going == plan.Replaced:
			leave = append(leave, m)
		case m.Going == plan.Staying && !m.Leaving:
			stay = append(stay, m)
		}
	}
	byAge := func(a, b plan.Placed) int { return cmp.Compare(memberNumber(a.Name), memberNumber(b.Name)) }
	slices.SortFunc(leave, byAge)
	slices.SortFunc(stay, byAge)
	i := slices.IndexFunc(leave, func(m plan.Placed) bool { return m.Name == old.Name })
	if i < 0 || len(stay) < len(leave) {
		return plan.Placed{}, false
	}
	return stay[len(stay)-len(leave)+i], true
}

// adminForgetHost drops a host that will not come back. Its members are then
// rebuilt elsewhere at once, and the old copies are deleted should it ever return.
func (s *Server) adminForgetHost(ctx context.Context, _ front.Call, in admin.HostRequest) (admin.Nothing, error) {
	return admin.Nothing{}, s.client.Retry(ctx, func() error {
		if err := s.knownHost(in.Host); err != nil {
			if s.awaited(in.Host) || s.told(in.Host) {
				return s.client.Commit(ctx, state.Put(state.Gone(in.Host), s.now()))
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
			// Others know it still. What it said stays: a copy that it was told of may be the newest.
			gone = append(gone, state.Put(state.Gone(in.Host), s.now()))
		}
		// Not if the host was heard again meanwhile. Assignments stay: they tell a
		// host that returns what to delete.
		return s.client.Commit(ctx, append(gone, state.Unchanged(state.Live(in.Host), live.Revision),
			state.Delete(state.Host(in.Host)), state.Delete(state.Live(in.Host)), state.Delete(state.Drain(in.Host)), state.Delete(state.Attempt(in.Host)),
			state.DeletePrefix(state.Report(in.Host, "")), state.DeletePrefix(state.TaskPrefix(in.Host)))...)
	})
}

// onlyCopies refuses while the host is the only one with everything that a
// database acknowledged: no other member serves as primary.
func (s *Server) onlyCopies(host string) error {
	var held []string
	for _, d := range s.subjects() {
		if d.Want.State == member.Absent {
			continue
		}
		if _, _, waits := s.Cache.Raw(state.Hold(d.Want.ID)); waits {
			here := slices.ContainsFunc(d.Layout.Members, func(m plan.Placed) bool { return m.Host == host })
			if here && !s.elsewhere(d.Want.ID, host) {
				return admin.NewError(admin.CodeOnlyCopy, "No other host has told of data of "+d.common.Name+" since the home was restored.",
					"start the agents of the others, and see howdah home held; or bring the host back; or, if the data are lost: howdah db delete "+d.common.Name)
			}
			continue
		}
		if !d.Layout.Created {
			continue
		}
		here := slices.ContainsFunc(d.Layout.Members, func(m plan.Placed) bool { return m.Host == host && !m.Leaving })
		if here && !s.survives(d, host) {
			held = append(held, d.common.Name)
		}
	}
	if len(held) == 0 {
		return nil
	}
	return admin.NewError(admin.CodeOnlyCopy,
		fmt.Sprintf("The host %s has the only complete copy of %s.", host, strings.Join(held, ", ")),
		"bring the host back; or, if the data are lost, delete what it holds first: howdah db delete "+held[0])
}

// survives: another host has the primary, or, while the database is stopped, the
// copy that was the primary last.
func (s *Server) survives(d subject, host string) bool {
	if primary, ok := d.Primary(); ok {
		return primary.Host != host
	}
	last, err := state.Load[member.Lead](s.Cache, state.Lead(d.Want.ID))
	return err == nil && d.Want.State == member.Stopped && last.Value.Host != host && d.Alive[last.Value.Host]
}

// memberNumber is the N of a member's name mN.
func memberNumber(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "m"))
	if err != nil {
		return 0
	}
	return n
}

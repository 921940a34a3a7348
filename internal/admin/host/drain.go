package host

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/aws/front"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// drainOrder is the value of a drain key. It counts that the key exists.
type drainOrder struct {
	Since time.Time `json:"since"`
}

// drain asks for a host to be emptied, and returns what moves where. A later call returns how far
// that is. It is idempotent.
func (s *service) drain(ctx context.Context, c front.Call, in admin.DrainRequest) (admin.DrainAnswer, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.DrainAnswer{}, err
	}
	if err := s.known(in.Host); err != nil {
		return admin.DrainAnswer{}, err
	}
	_, _, draining := s.Cache.Raw(state.Drain(in.Host))
	if !in.DryRun && !draining {
		if err := s.Commit(ctx, state.Put(state.Drain(in.Host), drainOrder{Since: c.Now})); err != nil {
			return admin.DrainAnswer{}, err
		}
		draining = true
	}
	return admin.DrainAnswer{Draining: draining, Moves: s.moves(in.Host)}, nil
}

// undrain lets a host have members again. Members that have left stay where they are. It is
// idempotent.
func (s *service) undrain(ctx context.Context, _ front.Call, in admin.HostRequest) (admin.Nothing, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.Nothing{}, err
	}
	if err := s.known(in.Host); err != nil {
		return admin.Nothing{}, err
	}
	return admin.Nothing{}, s.Commit(ctx, state.Delete(state.Drain(in.Host)))
}

// moves returns the members that a drain takes off a host, or would take. It asks the planner what
// it would do, and does nothing.
func (s *service) moves(host string) []admin.Move {
	moves := []admin.Move{}
	for _, d := range s.databases.All() {
		if !slices.ContainsFunc(d.Layout.Members, func(m plan.Placed) bool { return m.Host == host }) {
			continue
		}
		in, wanted := s.databases.Input(d)
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
func move(d database.Subject, m plan.Placed, out plan.Output) admin.Move {
	v := admin.Move{Database: d.Common.Name, ResourceID: d.Common.ResourceID, Member: m.Name, Role: d.Role(m)}
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

// replacement returns the member that takes the place of one that is to leave. Members of one seat
// are alike: the newest were added for those that are to leave.
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

// memberNumber returns the N of a member's name mN.
func memberNumber(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "m"))
	if err != nil {
		return 0
	}
	return n
}

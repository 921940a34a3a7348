package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// off takes an operator's word that a host is off as proof that nothing runs there. It refuses that
// for a host that is alive.
func (s *service) off(ctx context.Context, c front.Call, in admin.HostOffRequest) (admin.HostOffAnswer, error) {
	out := admin.HostOffAnswer{Databases: []string{}}
	return out, s.Retry(ctx, func() error {
		if err := s.known(in.Host); err != nil {
			return err
		}
		live, err := state.Load[member.Liveness](s.Cache, state.Live(in.Host))
		switch {
		case err != nil && !errors.Is(err, state.ErrNotFound):
			return err
		case err != nil || live.Value.Alive:
			return admin.NewError(admin.CodeHostAlive, "The host "+in.Host+" is alive.", "howdah status shows which hosts are silent")
		}
		out.Databases = s.ledFrom(in.Host)
		if in.DryRun {
			return nil
		}
		word := fence.Sworn{Host: in.Host, By: c.Who.ARN, At: time.Now().UTC()}
		return s.Commit(ctx, state.Unchanged(state.Live(in.Host), live.Revision), state.Put(state.Sworn(in.Host), word))
	})
}

// ledFrom names the databases whose primary is on a host, or was until it was lost.
func (s *service) ledFrom(host string) []string {
	names := []string{}
	for _, d := range s.databases.All() {
		led := slices.ContainsFunc(d.Layout.Members, func(m plan.Placed) bool { return m.Host == host && m.Name == d.Leader })
		for _, open := range state.LoadAll[fence.Case](s.Cache, state.FencePrefix(d.Want.ID)) {
			led = led || open.Value.Host == host
		}
		if led {
			names = append(names, d.Common.Name)
		}
	}
	return names
}

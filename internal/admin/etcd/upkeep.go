package etcd

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/state/etcd"
)

// timeout is long enough to copy large databases, one member after the other.
const timeout = 5 * time.Minute

// Upkeep makes room in etcd: an etcd.Keeper.
type Upkeep interface {
	Plan(ctx context.Context) ([]etcd.Deed, error)
	Mend(ctx context.Context) ([]etcd.Deed, error)
	Compact(ctx context.Context) (etcd.Deed, error)
	Defrag(ctx context.Context, member string) (etcd.Deed, error)
	Disarm(ctx context.Context) (etcd.Deed, error)
}

// Config is what the verb needs. All fields are required unless they say otherwise.
type Config struct {
	Members *Members
	Upkeep  Upkeep // nil: this control plane has no etcd of its own
	Log     *slog.Logger
}

// service has the handler.
type service struct{ Config }

// Verbs returns the verb on etcd.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg}
	return verb.Table{admin.VerbEtcd: verb.On(verb.OfHome, s.do).Within(timeout)}
}

// do does what a person wants done to etcd. It writes nothing to the state, so it works when nobody
// can write.
func (s *service) do(ctx context.Context, c front.Call, in admin.EtcdRequest) (admin.EtcdAnswer, error) {
	if s.Upkeep == nil {
		return admin.EtcdAnswer{}, admin.NewError(admin.CodeUnavailable, "This control plane has no etcd of its own.", "ask another one")
	}
	s.Log.Info("upkeep of etcd asked for", "do", in.Do, "member", in.Member, "dry_run", in.DryRun, "by", c.Who.Key)
	deeds, err := s.upkeep(ctx, in)
	if errors.Is(err, etcd.ErrNoMember) {
		return admin.EtcdAnswer{}, admin.NewError(admin.CodeInvalidRequest, "etcd has no member "+in.Member+".", "howdah etcd status lists them")
	}
	if err != nil {
		if known, ok := errors.AsType[*admin.Error](err); ok {
			return admin.EtcdAnswer{}, known
		}
		return admin.EtcdAnswer{}, admin.NewError(admin.CodeUnavailable, "etcd does not do it: "+err.Error()+".", "see `howdah etcd status`, and try again")
	}
	out := admin.EtcdAnswer{Deeds: []string{}, Members: s.Members.Ask(ctx)}
	for _, d := range deeds {
		out.Deeds = append(out.Deeds, d.String())
	}
	return out, nil
}

func (s *service) upkeep(ctx context.Context, in admin.EtcdRequest) ([]etcd.Deed, error) {
	if in.DryRun && in.Do != admin.EtcdMend {
		return nil, admin.NewError(admin.CodeInvalidRequest, "Only mend has a dry run.", "")
	}
	one := func(d etcd.Deed, err error) ([]etcd.Deed, error) { return []etcd.Deed{d}, err }
	switch in.Do {
	case admin.EtcdMend:
		if in.DryRun {
			return s.Upkeep.Plan(ctx)
		}
		return s.Upkeep.Mend(ctx)
	case admin.EtcdCompact:
		return one(s.Upkeep.Compact(ctx))
	case admin.EtcdDefrag:
		return one(s.Upkeep.Defrag(ctx, in.Member))
	case admin.EtcdDisarm:
		return one(s.Upkeep.Disarm(ctx))
	}
	return nil, admin.NewError(admin.CodeInvalidRequest, "There is nothing to do that is called "+in.Do+".", "choose one of mend, compact, defrag and disarm")
}

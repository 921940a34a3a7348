// Package key has the admin API's verbs on access keys. A secret is told once, when its key is
// made.
package key

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/access"
	"howdah/internal/identity/home"
	"howdah/internal/identity/iam"
	"howdah/internal/state"
)

// Config is what the verbs need. All fields are required.
type Config struct {
	State *state.Client
	Home  *home.Home
	Log   *slog.Logger
}

// service has the handlers.
type service struct {
	*state.Client
	home *home.Home
	log  *slog.Logger
}

// Verbs returns the verbs on access keys.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg.State, cfg.Home, cfg.Log}
	return verb.Table{
		admin.VerbKeyCreate: verb.On(verb.OfKeys, s.create),
		admin.VerbKeyList:   verb.On(verb.OfHome, s.list),
		admin.VerbKeyDelete: verb.On(verb.OfKeys, s.delete),
	}
}

// create makes an access key and tells its secret, once.
func (s *service) create(ctx context.Context, c front.Call, in admin.KeyCreateRequest) (admin.KeyCreateAnswer, error) {
	if in.Policy != nil && strings.TrimSpace(*in.Policy) == "" {
		return admin.KeyCreateAnswer{}, admin.NewError(admin.CodeInvalidRequest, "The access key cannot be made: its policy is empty, which would allow nothing.",
			"give a policy that allows something, or none")
	}
	sealer, err := front.Sealer(s.home)
	if err != nil {
		return admin.KeyCreateAnswer{}, err
	}
	key := access.Key{
		Account: in.Account, Name: in.Name, Created: c.Now, CreatedBy: c.Who.Key, ReadOnly: in.ReadOnly, Policy: wire.Or(in.Policy, ""),
	}
	if key.Account == "" {
		key.Account = s.home.Account
	}
	key, secret := sealer.Issue(key)
	if err := key.Check(); errors.Is(err, access.ErrInvalid) || errors.Is(err, iam.ErrInvalid) {
		return admin.KeyCreateAnswer{}, admin.NewError(admin.CodeInvalidRequest, "The access key cannot be made: "+err.Error()+".", "")
	} else if err != nil {
		return admin.KeyCreateAnswer{}, err
	}
	if err := s.Commit(ctx, state.Swap(state.Key(key.ID), 0, key)); err != nil {
		return admin.KeyCreateAnswer{}, err
	}
	s.log.Info("access key made", "key", key.ID, "account", key.Account, "by", c.Who.Key)
	return admin.KeyCreateAnswer{Key: shown(key), Secret: secret}, nil
}

func shown(k access.Key) admin.Key {
	return admin.Key{
		AccessKey: k.ID, Account: k.Account, Name: k.Name, ReadOnly: k.ReadOnly, Policy: k.Policy, Created: wire.Some(k.Created), CreatedBy: k.CreatedBy,
	}
}

// list returns all access keys without their secrets.
func (s *service) list(ctx context.Context, _ front.Call, _ admin.Nothing) (admin.KeyListAnswer, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.KeyListAnswer{}, err
	}
	own, err := s.home.Credentials()
	if err != nil {
		return admin.KeyListAnswer{}, err
	}
	out := admin.KeyListAnswer{Keys: []admin.Key{}}
	for _, c := range own {
		out.Keys = append(out.Keys, admin.Key{AccessKey: c.AccessKey, Account: c.Account, Name: front.OfHome(c).Name, OfHome: true})
	}
	for _, r := range state.LoadAll[access.Key](s.Cache, state.KeyRoot) {
		out.Keys = append(out.Keys, shown(r.Value))
	}
	return out, nil
}

// delete removes an access key. From the answer on the key opens nothing here, and within moments
// nothing anywhere.
func (s *service) delete(ctx context.Context, c front.Call, in admin.KeyRequest) (admin.Nothing, error) {
	own, err := s.home.Credentials()
	if err != nil {
		return admin.Nothing{}, err
	}
	for _, known := range own {
		if known.AccessKey == in.AccessKey {
			return admin.Nothing{}, admin.NewError(admin.CodeKeyOfHome, "The access key "+in.AccessKey+" is the home's own.",
				"it is in credentials.json of the home: delete it there, on each control plane")
		}
	}
	return admin.Nothing{}, s.Retry(ctx, func() error {
		r, err := state.Load[access.Key](s.Cache, state.Key(in.AccessKey))
		if errors.Is(err, state.ErrNotFound) {
			return admin.NewError(admin.CodeKeyNotFound, "There is no access key "+in.AccessKey+".", "see howdah key list")
		}
		if err != nil {
			return err
		}
		if err := s.Commit(ctx, state.Remove(r.Key, r.Revision)); err != nil {
			return err
		}
		s.log.Info("access key deleted", "key", in.AccessKey, "by", c.Who.Key)
		return nil
	})
}

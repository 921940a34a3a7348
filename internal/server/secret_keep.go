package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"howdah/internal/event"
	"howdah/internal/secret"
	"howdah/internal/state"
)

// errNotUsable: a database that is not available takes no other password.
var errNotUsable = errors.New("the database is not available")

// rotateManaged has a database take another password. The verifier and the secret change in
// one transaction: whatever ends in the middle, the password that goes with each of them is
// known.
func (s *Server) rotateManaged(ctx context.Context, c call, m managedSecret, days int) (secret.Secret, error) {
	yes := true
	asked := masterAsked{rotate: &yes, now: &yes, facts: m.facts, days: days}
	l := s.look(m.Account)
	mod := &modification{look: l, call: c}
	var ops []state.Op
	if m.Cluster {
		r, err := l.findCluster(m.common.Scope, m.common.Name)
		if err != nil {
			return secret.Secret{}, err
		}
		mod.kind = event.Cluster
		cluster := r.Value
		if !slices.Contains(usable, l.clusterStatus(cluster)) {
			return secret.Secret{}, errNotUsable
		}
		if err := mod.master(&cluster.Common, true, asked); err != nil {
			return secret.Secret{}, err
		}
		mod.finish(&cluster.Common)
		if ops, err = mod.putCluster(r, cluster); err != nil {
			return secret.Secret{}, err
		}
		return mod.rotated, s.commit(ctx, ops...)
	}
	r, err := l.findInstance(m.common.Scope, m.common.Name)
	if err != nil {
		return secret.Secret{}, err
	}
	mod.kind = event.Instance
	i := r.Value
	if !slices.Contains(usable, l.status(i)) {
		return secret.Secret{}, errNotUsable
	}
	if err := mod.master(&i.Common, false, asked); err != nil {
		return secret.Secret{}, err
	}
	mod.finishInstance(&i)
	if ops, err = mod.putInstance(r, i); err != nil {
		return secret.Secret{}, err
	}
	return mod.rotated, s.commit(ctx, ops...)
}

// secretChores are the passwords that a database has taken, and those that are due.
func (s *Server) secretChores(h *household, now time.Time) []chore {
	if changes := s.Cache.Changes(state.SecretRoot); changes != h.secretChanges {
		h.secretChanges, h.secrets = changes, state.LoadAll[secret.Secret](s.Cache, state.SecretRoot)
	}
	var all []chore
	for _, r := range h.secrets {
		if r.Value.Pending == nil && now.Before(r.Value.Due()) && !s.overtaken(r.Value) {
			continue
		}
		all = append(all, chore{"keep a managed password", r.Key, r.Value.Account, func(ctx context.Context, _ *look, c call) error {
			return s.keepSecret(ctx, c, r.Value)
		}})
	}
	return all
}

// overtaken: the database has a verifier that goes with none of the passwords: the home was
// restored from a backup of before it was changed.
func (s *Server) overtaken(of secret.Secret) bool {
	serial, ok := s.passwordSerial(of)
	return ok && serial > of.Newest()
}

func (s *Server) passwordSerial(of secret.Secret) (int64, bool) {
	l := s.look(of.Account)
	if of.Cluster {
		c, ok := l.cluster[of.Database]
		return c.PasswordSerial, ok && c.Managed
	}
	i := l.instance[of.Database]
	if i == nil {
		return 0, false
	}
	return i.PasswordSerial, i.Managed
}

// keepSecret takes the next step with one secret.
func (s *Server) keepSecret(ctx context.Context, c call, of secret.Secret) error {
	all := s.managedSecrets(of.Scope)
	at := slices.IndexFunc(all, func(m managedSecret) bool { return m.Database == of.Database })
	if at < 0 {
		return nil // its database is going, or nobody manages it any more
	}
	m := all[at]
	switch {
	case m.record.Value.Pending != nil && m.Pending == nil:
		return s.commit(ctx, state.Swap(m.record.Key, m.record.Revision, m.Secret))
	case m.Pending == nil && (!c.now.Before(m.Due()) || s.overtaken(m.Secret)):
		_, err := s.rotateManaged(ctx, c, m, m.Days)
		if errors.Is(err, errNotUsable) {
			return nil // when it is
		}
		return err
	}
	return nil
}

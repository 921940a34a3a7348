package server

import (
	"context"
	"errors"
	"reflect"
	"time"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/cluster"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/instance"
	"howdah/internal/aws/rds/look"
	"howdah/internal/identity/secret"
	"howdah/internal/state"
)

// rotateManaged has a database take another password.
func (s *Server) rotateManaged(ctx context.Context, c front.Call, m database.Managed, days int, token string) (secret.Secret, error) {
	yes := true
	asked := database.Master{Rotate: &yes, Now: &yes, Facts: m.Facts, Days: days, Token: token}
	if m.Cluster {
		return cluster.Kind.Rotate(ctx, s.databases, c, m, asked)
	}
	return instance.Kind.Rotate(ctx, s.databases, c, m, asked)
}

// secretChores are the passwords that a database has taken, and those that are due.
func (s *Server) secretChores(h *household, now time.Time) []chore {
	if changes := s.Cache.Changes(state.SecretRoot); changes != h.secretChanges {
		h.secretChanges, h.secrets = changes, state.ViewAll[secret.Secret](s.Cache, state.SecretRoot)
	}
	var all []chore
	looks := map[string]*look.Look{}
	for _, r := range h.secrets {
		account := r.Value.Account
		if looks[account] == nil {
			looks[account] = s.looks.Of(account)
		}
		m, ok := database.ManagedOf(looks[account], r)
		if !ok || m.Until == 0 && m.Pending == nil && m.Known && now.Before(m.Due()) && !m.Overtaken(secret.Standing{Verifier: m.Common.PasswordSerial}) {
			continue
		}
		all = append(all, chore{"keep a managed password", r.Key, account, func(ctx context.Context, l *sight, c front.Call) error {
			return s.keepSecret(ctx, l, c, r.Key)
		}})
	}
	return all
}

// keepSecret takes the next step with one secret: it notes what the database has taken, and
// has it take another password when that is due, or when nobody knows the one that it has.
func (s *Server) keepSecret(ctx context.Context, l *sight, c front.Call, key string) error {
	r, err := state.View[secret.Secret](s.Cache, key)
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	m, ok := database.ManagedOf(l.Look, r)
	if !ok {
		return nil // its database is going, or nobody manages it any more
	}
	m = m.Now(l.Look)
	// What the database says may be newer than the record that was read before.
	if again, err := state.View[secret.Secret](s.Cache, key); err != nil || again.Revision != r.Revision {
		return err // the next round sees both as they are then
	}
	if m.Until > 0 {
		return s.leaveSecret(ctx, r, m)
	}
	due := m.Pending == nil && !c.Now.Before(m.Due())
	switch {
	case due && m.Known || m.Overtaken(database.Standing(m.Common, m.Facts)):
		_, err := s.rotateManaged(ctx, c, m, m.Days, "")
		if errors.Is(err, database.ErrNotUsable) {
			return nil // when it is
		}
		return err
	case m.Current.ID != r.Value.Current.ID, m.Known && !r.Value.Known:
		return s.client.Commit(ctx, state.Swap(r.Key, r.Revision, m.Secret))
	}
	return nil
}

// leaveSecret keeps a secret in whose place the owner chose a password, until the database has
// taken that: it may have any of the secret's before.
func (s *Server) leaveSecret(ctx context.Context, r state.Record[*secret.Secret], m database.Managed) error {
	if m.Gone() {
		return s.client.Commit(ctx, state.Remove(r.Key, r.Revision))
	}
	if !reflect.DeepEqual(m.Secret, *r.Value) {
		return s.client.Commit(ctx, state.Swap(r.Key, r.Revision, m.Secret))
	}
	return nil
}

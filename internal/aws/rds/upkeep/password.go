package upkeep

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

// RotatePassword has the database of a managed password take another one, and answers the secret
// with it: see secretsmanager.Config.
func (u *Upkeep) RotatePassword(ctx context.Context, c front.Call, m database.Managed, days int, token string) (secret.Secret, error) {
	yes := true
	asked := database.Master{Rotate: &yes, Now: &yes, Facts: m.Facts, Days: days, Token: token}
	if m.Cluster {
		return cluster.Kind.Rotate(ctx, u.Source, c, m, asked)
	}
	return instance.Kind.Rotate(ctx, u.Source, c, m, asked)
}

// passwords are the managed ones that a database has taken, and those that are due.
func (h *House) passwords(now time.Time) []chore {
	if changes := h.State.Cache.Changes(state.SecretRoot); changes != h.secretChanges {
		h.secretChanges, h.secrets = changes, state.ViewAll[secret.Secret](h.State.Cache, state.SecretRoot)
	}
	var all []chore
	looks := map[string]*look.Look{}
	for _, r := range h.secrets {
		account := r.Value.Account
		if looks[account] == nil {
			looks[account] = h.Looks.Of(account)
		}
		m, ok := database.ManagedOf(looks[account], r)
		if !ok || m.Until == 0 && m.Pending == nil && m.Known && now.Before(m.Due()) && !m.Overtaken(secret.Standing{Verifier: m.Common.PasswordSerial}) {
			continue
		}
		all = append(all, chore{"keep a managed password", r.Key, account, func(ctx context.Context, l *database.Sight, c front.Call) error {
			return h.keepPassword(ctx, l.Look, c, r.Key)
		}})
	}
	return all
}

// keepPassword takes the next step with one secret: it notes what the database has taken, and
// has it take another password when that is due, or when nobody knows the one that it has.
func (u *Upkeep) keepPassword(ctx context.Context, l *look.Look, c front.Call, key string) error {
	r, err := state.View[secret.Secret](u.State.Cache, key)
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	m, ok := database.ManagedOf(l, r)
	if !ok {
		return nil // its database is going, or nobody manages it any more
	}
	m = m.Now(l)
	// What the database says may be newer than the record that was read before.
	if again, err := state.View[secret.Secret](u.State.Cache, key); err != nil || again.Revision != r.Revision {
		return err // the next round sees both as they are then
	}
	if m.Until > 0 {
		return u.leavePassword(ctx, r, m)
	}
	due := m.Pending == nil && !c.Now.Before(m.Due())
	switch {
	case due && m.Known || m.Overtaken(database.Standing(m.Common, m.Facts)):
		_, err := u.RotatePassword(ctx, c, m, m.Days, "")
		if errors.Is(err, database.ErrNotUsable) {
			return nil // when it is
		}
		return err
	case m.Current.ID != r.Value.Current.ID, m.Known && !r.Value.Known:
		return u.State.Commit(ctx, state.Swap(r.Key, r.Revision, m.Secret))
	}
	return nil
}

// leavePassword keeps a secret in whose place the owner chose a password, until the database has
// taken that: it may have any of the secret's before.
func (u *Upkeep) leavePassword(ctx context.Context, r state.Record[*secret.Secret], m database.Managed) error {
	if m.Gone() {
		return u.State.Commit(ctx, state.Remove(r.Key, r.Revision))
	}
	if !reflect.DeepEqual(m.Secret, *r.Value) {
		return u.State.Commit(ctx, state.Swap(r.Key, r.Revision, m.Secret))
	}
	return nil
}

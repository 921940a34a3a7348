package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/rig"
)

// managed is an instance whose password is managed, with what is needed to log in without the
// control plane.
type managed struct {
	*story
	name, arn string
	config    *pgx.ConnConfig
}

func (s *story) givenManaged(name string, multiAZ bool) managed {
	s.Helper()
	arn, err := s.rig.CreateManaged(s.Context(), name, multiAZ)
	s.must(err, "create "+name)
	config, err := s.rig.Config(s.Context(), name)
	s.must(err, "find the endpoint")
	return managed{s, name, arn, config}
}

func (m managed) password(stage string) string {
	m.Helper()
	p, err := m.rig.SecretPassword(m.Context(), m.arn, stage)
	m.must(err, "read "+stage)
	return p
}

// lets tries a password, and returns an error unless the outcome is the expected one. A failure
// that is no refusal of the password decides nothing.
func (m managed) lets(password string, in bool) error {
	ctx, cancel := context.WithTimeout(m.Context(), patience.For(5*time.Second))
	defer cancel()
	err := rig.Login(ctx, m.config, password)
	var refused *pgconn.PgError
	switch {
	case err == nil && !in:
		return errors.New("the password is in force")
	case err != nil && !in && errors.As(err, &refused) && refused.Code == "28P01":
		return nil
	}
	return err
}

// settles waits until the current password is another one than before and is in force, and the
// previous one is not.
func (m managed) settles(before string) {
	m.Helper()
	m.eventually(60*time.Second, func() error {
		now, err := m.rig.SecretPassword(m.Context(), m.arn, "AWSCURRENT")
		if err == nil && now == before {
			err = errors.New("the password before is current still")
		}
		if err == nil {
			err = m.lets(now, true)
		}
		if err == nil {
			err = m.lets(before, false)
		}
		return err
	})
	m.eventually(30*time.Second, func() error { return m.status("active") })
	m.must(m.rig.WaitStatus(m.Context(), m.name, "available", 30*time.Second), "the instance")
}

func (m managed) status(want string) error {
	i, err := m.rig.Instance(m.Context(), m.name)
	if err == nil && (i.MasterUserSecret == nil || *i.MasterUserSecret.SecretStatus != want) {
		err = fmt.Errorf("the secret is %+v, want %s", i.MasterUserSecret, want)
	}
	return err
}

func (m managed) rotate() {
	m.Helper()
	// An instance may be about to say that it is available.
	m.eventually(30*time.Second, func() error {
		_, err := m.rig.CallSecrets(m.Context(), "RotateSecret", map[string]any{"SecretId": m.arn})
		return err
	})
}

// The control plane dies while a managed password is being changed: before the database has taken
// it, and right after. Whichever password is current then lets its reader in, or soon does. A
// user's transaction that holds the change up for long brings nothing down.
func TestAManagedPasswordOutlivesTheControlPlane(t *testing.T) {
	s := begin(t, nil)
	m := s.givenManaged("orders", false)
	id := must(s.rig.Database(s.Context(), m.name))
	first := m.password("AWSCURRENT")
	s.must(m.lets(first, true), "log in with the first password")

	// A user's open transaction holds the master user's row, so that the database cannot take the
	// next password.
	config := m.config.Copy()
	config.Password = first
	holder, err := pgx.ConnectConfig(s.Context(), config)
	s.must(err, "connect")
	defer holder.Close(context.Background())
	_, err = holder.Exec(s.Context(), "BEGIN; ALTER ROLE app CONNECTION LIMIT -1")
	s.must(err, "hold the row")
	pid := must(postgres.Postmaster(s.leader(id).DataDir()))
	m.rotate()
	next := m.password("AWSPENDING")
	s.must(m.status("rotating"), "before the database has it")
	held := time.Now()
	s.rig.KillPart("serve")
	s.must(s.rig.StartPart("serve"), "start serve")
	s.eventually(60*time.Second, func() error {
		now, err := s.rig.SecretPassword(s.Context(), m.arn, "AWSCURRENT")
		if err == nil && now != first {
			err = errors.New("a password is current that the database has not")
		}
		if err == nil {
			err = m.lets(now, true)
		}
		// That is longer than a verdict on a PostgreSQL that hangs would take.
		if err == nil && time.Since(held) < 15*time.Second {
			err = errors.New("it has not been held up for long yet")
		}
		return err
	})
	s.must(m.lets(next, false), "the pending password")
	if now := must(postgres.Postmaster(s.leader(id).DataDir())); now != pid {
		t.Errorf("PostgreSQL was restarted: it is process %d, and was %d", now, pid)
	}
	_, err = holder.Exec(s.Context(), "ROLLBACK")
	s.must(err, "let the row go")
	m.settles(first)
	if now := m.password("AWSCURRENT"); now != next {
		t.Error("another password than the pending one is current")
	}

	// At the moment at which the database has the next password, nobody is there to record that.
	for _, part := range []string{"serve", "agent-" + s.leader(id).ZoneLetter(), "serve"} {
		before := m.password("AWSCURRENT")
		m.rotate()
		pending, err := s.rig.SecretPassword(s.Context(), m.arn, "AWSPENDING")
		if err == nil {
			s.eventually(30*time.Second, func() error { return m.lets(pending, true) })
		}
		s.rig.KillPart(part)
		s.must(s.rig.StartPart(part), "start "+part)
		m.settles(before)
	}
}

// A password is changed again and again, and the primary is lost in between. Whoever reads the
// secret again when a login fails gets in. The story shows how long that takes.
func TestAManagedPasswordIsCurrentAtOnce(t *testing.T) {
	s := begin(t, nil)
	m := s.givenManaged("orders", true)
	id := must(s.rig.Database(s.Context(), m.name))
	s.eventually(30*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	for round := range 4 {
		before := m.password("AWSCURRENT")
		m.rotate()
		if round == 2 {
			s.must(s.leader(id).KillPostgres(), "kill PostgreSQL of the primary")
		}
		var refused time.Time
		s.eventually(60*time.Second, func() error {
			now, err := s.rig.SecretPassword(s.Context(), m.arn, "AWSCURRENT")
			if err == nil {
				err = m.lets(now, true)
			}
			if err != nil && refused.IsZero() {
				refused = time.Now()
			}
			if err == nil && now == before {
				err = errors.New("not changed yet")
			}
			return err
		})
		if !refused.IsZero() {
			t.Logf("round %d: from the first refusal to a login with what is current %s", round, time.Since(refused).Round(time.Millisecond))
		}
		m.settles(before)
		s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	}
}

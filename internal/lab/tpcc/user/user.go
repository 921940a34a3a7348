// Package user is a virtual user: it runs one transaction after the other on a session of its own,
// counts what becomes of them, and goes on whatever happens.
package user

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/host/pace"
	"howdah/internal/lab/tpcc/form"
	"howdah/internal/lab/tpcc/meter"
	"howdah/internal/lab/tpcc/terminal"
	"howdah/internal/lab/tpcc/wire"
)

// Options say what a user is like.
type Options struct {
	Config   *pgx.ConnConfig // as wire.Prepared returns it
	Schema   string          // as SQL has it
	Call     form.Call
	Keying   bool // types and thinks
	Terminal terminal.Options
	Meter    *meter.Meter
}

// User is a virtual user. Only Break may be called beside Run.
type User struct {
	o        Options
	terminal *terminal.Terminal
	params   params
	answer   answer
	call     []byte // room for the text of a CALL
	order    orderRoom
	began    time.Time // the session

	mu      sync.Mutex
	session *wire.Session // changed by the user's goroutine alone, with mu held; nil after it was lost
	broken  bool          // guarded by mu
}

// New returns a user that is not connected.
func New(o Options) *User {
	o.Terminal.Lines = o.Call == form.ClientSQL || o.Terminal.Mode == form.Specification
	return &User{o: o, terminal: terminal.New(o.Terminal)}
}

// Warehouses are those that the user works for.
func (u *User) Warehouses() []int { return u.terminal.Warehouses() }

// connectTime bounds how long a session may take to begin. A host that is gone costs no more.
const connectTime = 5 * time.Second

// Connect begins the user's session.
func (u *User) Connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	s, err := wire.Connect(ctx, u.o.Config)
	if err != nil {
		return err
	}
	if err := u.prepare(ctx, s); err != nil {
		s.Close()
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.broken {
		s.Break()
	}
	u.session, u.began = s, time.Now()
	return nil
}

func (u *User) prepare(ctx context.Context, s *wire.Session) error {
	if u.o.Call != form.ClientSQL {
		return nil
	}
	for name, sql := range statements(u.o.Schema, u.o.Terminal.Mode) {
		if err := s.Prepare(ctx, name, sql); err != nil {
			return fmt.Errorf("prepare %s: %w", name, err)
		}
	}
	return nil
}

// Break ends what the user waits for. All that follows fails at once.
func (u *User) Break() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.broken = true
	if u.session != nil {
		u.session.Break()
	}
}

// Close ends the user's session. It is idempotent.
func (u *User) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.session != nil {
		u.session.Close()
		u.session = nil
	}
}

// Run does transactions until ctx ends. The last one is finished, unless Break ends it.
func (u *User) Run(ctx context.Context) {
	defer u.Close()
	for ctx.Err() == nil {
		kind := u.terminal.Next()
		if u.o.Keying && !pace.Sleep(ctx, u.terminal.Keying(kind)) {
			return
		}
		if u.session == nil && !u.reconnect(ctx) {
			return
		}
		u.transact(ctx, kind)
		if u.o.Keying && !pace.Sleep(ctx, u.terminal.Thinking(kind)) {
			return
		}
	}
}

// mostTries bounds how often a transaction is tried that others stand in the way of.
const mostTries = 10

// transact does one transaction, and counts it. Its input is drawn once.
func (u *User) transact(ctx context.Context, kind form.Kind) {
	do := u.draw(kind)
	began := time.Now()
	for tries := 1; ; tries++ {
		err := u.in(do)
		at := time.Now()
		switch {
		case err == nil:
			u.o.Meter.Done(kind, at, at.Sub(began), false)
		case errors.Is(err, errUnused):
			u.o.Meter.Done(kind, at, at.Sub(began), true)
		case ctx.Err() != nil:
			// Whoever ended the run may have broken it off.
			u.leave(err)
		case wire.Retryable(err) && tries < mostTries && u.retries():
			u.o.Meter.Retried(kind, at)
			continue
		default:
			lost := u.leave(err)
			u.o.Meter.Failed(kind, at, wire.State(err), wire.Text(err), lost)
		}
		return
	}
}

// retries is whether transactions are tried again that others stand in the way of. HammerDB gives
// them up.
func (u *User) retries() bool {
	return u.o.Call == form.ClientSQL || u.o.Terminal.Mode == form.Specification
}

// readOnly is the SQLSTATE of a write to a server that became a standby. The primary is elsewhere.
const readOnly = "25006"

// leave gives up a session that is of no use after an error.
func (u *User) leave(err error) (lost bool) {
	if !errors.Is(err, wire.ErrLost) && wire.State(err) != readOnly {
		return false
	}
	u.Close()
	return true
}

// reconnectPause lies between two attempts to connect. It is short, so that a series shows when a
// server was back.
const reconnectPause = 200 * time.Millisecond

// reconnect begins a session in the place of a lost one. It returns false if ctx ends before.
func (u *User) reconnect(ctx context.Context) bool {
	// A server that ends each session at once is not asked without a pause, either.
	if !pace.Sleep(ctx, reconnectPause-time.Since(u.began)) {
		return false
	}
	for {
		err := u.Connect(ctx)
		if err == nil {
			u.o.Meter.Reconnected(time.Now())
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		u.o.Meter.Refused(time.Now(), wire.State(err), wire.Text(err))
		if !pace.Sleep(ctx, reconnectPause) {
			return false
		}
	}
}

// Package probe looks at databases as their users would: whether one can log in, what the server
// says of itself, how much it has stored, and which commits wait.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/pace"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
)

const (
	// Every is how often it looks at a member that serves.
	Every = time.Second
	// probeSoon is the pace until a member serves: a new database is not kept
	// waiting by its probe.
	probeSoon = 100 * time.Millisecond
	// loginEvery is how long a login proves that one can log in.
	loginEvery   = 10 * time.Second
	probeTimeout = 2 * time.Second
)

// Prober looks at a member's database as a client would: it logs in over TCP with
// TLS, by certificate, and asks. Its word is the truth about "available".
type Prober struct {
	agent *agent.Agent
	id    string

	mu       sync.Mutex
	target   member.Assignment // guarded by mu; Running only when it should serve
	sight    Sight             // guarded by mu
	answered time.Time         // guarded by mu: the server said anything last
	conn     *pgx.Conn         // belongs to the goroutine
	loggedIn time.Time         // belongs to the goroutine
	restOld  bool              // belongs to the goroutine; as of loggedIn
	waits    commitWaits       // belongs to the goroutine
	heritage postgres.Heritage // belongs to the goroutine; of the primary that it is
	gauge    gauge
	hold     storageHold // belongs to the goroutine
}

// Sight is what was seen last.
type Sight struct {
	Ready       bool
	Facts       postgres.Facts
	OwnerSerial int64
	Heritage    postgres.Heritage // of a primary
	Size        int64
	Shown       Shown
	RESTOld     bool // Patroni shows another certificate than it should
	Follows     bool // nobody can log in, and it says on its socket that it is a standby
	Detail      string
	NoRoom      bool // PostgreSQL refused to write
	// stuck commits have waited long for standbys, the first of them since then.
	Stuck      int
	StuckSince time.Time
	At         time.Time
}

// Shown is what the server's certificate said at the newest login.
type Shown struct {
	Authority string
	Until     time.Time
}

// New is the prober of a member.
func New(a *agent.Agent, id string) *Prober { return &Prober{agent: a, id: id} }

// Aim tells the prober which server to look at; the zero assignment: none.
func (p *Prober) Aim(a member.Assignment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = a
}

// Last is what was seen last.
func (p *Prober) Last() Sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sight
}

// AnsweredAt is when the server said anything last, be it a refusal.
func (p *Prober) AnsweredAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered
}

// hears notes whether the server said something: err is what came of a question.
func (p *Prober) hears(err error) {
	if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && !refused {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = time.Now()
}

// Run looks until ctx ends.
func (p *Prober) Run(ctx context.Context) {
	defer p.drop()
	for {
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		var s Sight
		if target.ID != "" {
			s = p.look(ctx, target)
		} else {
			p.drop()
		}
		p.mu.Lock()
		news := s.Detail != "" && s.Detail != p.sight.Detail
		p.sight = s
		p.mu.Unlock()
		if news && ctx.Err() == nil {
			p.agent.Log.Info("database does not answer as it should", "member", p.id, "error", s.Detail)
		}
		pause := Every
		if !s.Ready {
			pause = probeSoon
		}
		if !pace.Sleep(ctx, pause) {
			return
		}
	}
}

func (p *Prober) drop() {
	p.heritage = postgres.Heritage{} // the next server may have other data
	if p.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.conn.Close(ctx)
	p.conn = nil
}

func (p *Prober) look(ctx context.Context, target member.Assignment) Sight {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	s := Sight{At: time.Now()}
	if err := p.login(ctx, target); err != nil {
		s.Detail, s.NoRoom = err.Error(), hasCode(err, diskFullCode)
		s.Follows = p.follows(ctx, target)
		// Full of clients is not out of service.
		s.Ready = hasCode(err, "53300") && p.Last().Ready
		s.Facts, s.OwnerSerial, s.Size, s.Shown = p.Last().Facts, p.Last().OwnerSerial, p.Last().Size, p.Last().Shown
		return s
	}
	facts, err := postgres.Observe(ctx, p.conn)
	p.hears(err)
	if err != nil {
		p.drop()
		s.Detail, s.NoRoom = err.Error(), hasCode(err, diskFullCode)
		return s
	}
	s.Facts, s.Ready, s.Shown, s.RESTOld = facts, true, shownBy(p.conn.PgConn().Conn()), p.restOld
	if s.OwnerSerial, err = p.owner(ctx, target, facts); err != nil {
		s.Detail, s.NoRoom = err.Error(), hasCode(err, diskFullCode)
	}
	usage, measured := p.usage(ctx, target)
	s.Size = usage.Bytes
	s.Facts.StorageFull = p.holdStorage(ctx, target, facts, usage, measured)
	s.Stuck, s.StuckSince = p.waits.look(s.At, facts.Waiting)
	p.tellWaits(s)
	// What keeps the server from harm has had the time first.
	if err := p.inherit(ctx, target, facts); err != nil && s.Detail == "" {
		s.Detail = err.Error()
	}
	s.Heritage = p.heritage
	return s
}

// follows: the server says on its private socket that it is a standby.
func (p *Prober) follows(ctx context.Context, target member.Assignment) (recovery bool) {
	conn, err := dial.Admin(ctx, p.agent, target)
	if err != nil {
		return false
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&recovery)
	return err == nil && recovery
}

// tellWaits leaves word in the log of commits that begin to wait long, and of their end.
func (p *Prober) tellWaits(s Sight) {
	before := p.Last().Stuck
	switch {
	case s.Stuck > 0 && before == 0:
		p.agent.Log.Warn("commits wait for a synchronous standby", "member", p.id, "commits", s.Stuck, "since", s.StuckSince)
	case s.Stuck == 0 && before > 0:
		p.agent.Log.Info("no commit waits for a synchronous standby any more", "member", p.id)
	}
}

// diskFullCode is PostgreSQL's disk_full (its documentation, appendix A).
const diskFullCode = "53100"

func hasCode(err error, code string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == code
}

// login makes a new connection now and then, and keeps it in between: a server
// that answers old sessions but lets nobody in is not available.
func (p *Prober) login(ctx context.Context, target member.Assignment) error {
	if p.conn != nil && !p.conn.IsClosed() && time.Since(p.loggedIn) < p.patience(target) {
		return nil
	}
	p.drop()
	config, err := dial.Monitor(p.agent, target)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	p.hears(err)
	if err != nil {
		return fmt.Errorf("log in to %s: %w", p.id, err)
	}
	p.conn, p.loggedIn = conn, time.Now()
	p.restOld = dial.ShowsOther(ctx, p.agent, target)
	return nil
}

// patience is how long a login is good for: not long when the server is about to
// show the certificate of another authority.
func (p *Prober) patience(target member.Assignment) time.Duration {
	if p.Last().Shown.Authority != target.Authority {
		return Every / 2
	}
	return loginEvery
}

// shownBy is what the certificate of a connection's server says.
func shownBy(conn net.Conn) Shown {
	t, ok := conn.(*tls.Conn)
	if !ok || len(t.ConnectionState().PeerCertificates) == 0 {
		return Shown{}
	}
	leaf := t.ConnectionState().PeerCertificates[0]
	return Shown{certs.AuthorityOf(leaf), leaf.NotAfter.UTC()}
}

// owner sets the master user up on a primary, once for each serial.
func (p *Prober) owner(ctx context.Context, target member.Assignment, facts postgres.Facts) (int64, error) {
	serial, err := postgres.OwnerSerial(ctx, p.conn)
	if err != nil || facts.InRecovery || serial >= target.Owner.Serial || target.Owner.Name == "" {
		return serial, err
	}
	conn, err := dial.Admin(ctx, p.agent, target)
	if err != nil {
		return serial, err
	}
	defer conn.Close(ctx)
	owner := postgres.Owner{
		Name: target.Owner.Name, Verifier: target.Owner.Verifier,
		Serial: target.Owner.Serial, Database: target.Owner.Database,
	}
	if err := postgres.SetOwner(ctx, conn, owner); err != nil {
		return serial, err
	}
	return owner.Serial, nil
}

// inherit disables subscriptions on a primary that came with the data of another database: of the source
// of a replica that was promoted. Until that is done, the module has none of them receive.
func (p *Prober) inherit(ctx context.Context, target member.Assignment, facts postgres.Facts) error {
	if facts.InRecovery {
		p.heritage = postgres.Heritage{}
		return nil
	}
	if p.heritage.Database == target.Scope {
		return nil
	}
	conn, err := dial.Admin(ctx, p.agent, target)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	p.heritage, err = postgres.Inherit(ctx, conn, target.Scope)
	return err
}

// Target is the assignment that it looks at.
func (p *Prober) Target() member.Assignment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

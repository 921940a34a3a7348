package database

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
	"howdah/internal/host/database/dial"
	"howdah/internal/host/pace"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
)

const (
	probeEvery = time.Second
	// probeSoon is the pace until a member serves: a new database is not kept
	// waiting by its probe.
	probeSoon = 100 * time.Millisecond
	// loginEvery is how long a login proves that one can log in.
	loginEvery   = 10 * time.Second
	probeTimeout = 2 * time.Second
)

// prober looks at a member's database as a client would: it logs in over TCP with
// TLS, by certificate, and asks. Its word is the truth about "available".
type prober struct {
	host *Host
	id   string

	mu       sync.Mutex
	target   member.Assignment // guarded by mu; Running only when it should serve
	sight    sight             // guarded by mu
	answered time.Time         // guarded by mu: the server said anything last
	conn     *pgx.Conn         // belongs to the goroutine
	loggedIn time.Time         // belongs to the goroutine
	restOld  bool              // belongs to the goroutine; as of loggedIn
	waits    commitWaits       // belongs to the goroutine
	gauge    gauge
	hold     storageHold // belongs to the goroutine
}

// sight is what was seen last.
type sight struct {
	ready       bool
	facts       postgres.Facts
	ownerSerial int64
	size        int64
	shown       shown
	restOld     bool // Patroni shows another certificate than it should
	follows     bool // nobody can log in, and it says on its socket that it is a standby
	detail      string
	noRoom      bool // PostgreSQL refused to write
	// stuck commits have waited long for standbys, the first of them since then.
	stuck      int
	stuckSince time.Time
	at         time.Time
}

// shown is what the server's certificate said at the newest login.
type shown struct {
	authority string
	until     time.Time
}

func newProber(a *Host, id string) *prober { return &prober{host: a, id: id} }

// aim tells the prober which server to look at; the zero assignment: none.
func (p *prober) aim(a member.Assignment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = a
}

// last is what was seen last.
func (p *prober) last() sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sight
}

// answeredAt is when the server said anything last, be it a refusal.
func (p *prober) answeredAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered
}

// hears notes whether the server said something: err is what came of a question.
func (p *prober) hears(err error) {
	if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && !refused {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = time.Now()
}

func (p *prober) run(ctx context.Context) {
	defer p.drop()
	for {
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		var s sight
		if target.ID != "" {
			s = p.look(ctx, target)
		} else {
			p.drop()
		}
		p.mu.Lock()
		news := s.detail != "" && s.detail != p.sight.detail
		p.sight = s
		p.mu.Unlock()
		if news && ctx.Err() == nil {
			p.host.Log.Info("database does not answer as it should", "member", p.id, "error", s.detail)
		}
		pause := probeEvery
		if !s.ready {
			pause = probeSoon
		}
		if !pace.Sleep(ctx, pause) {
			return
		}
	}
}

func (p *prober) drop() {
	if p.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.conn.Close(ctx)
	p.conn = nil
}

func (p *prober) look(ctx context.Context, target member.Assignment) sight {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	s := sight{at: time.Now()}
	if err := p.login(ctx, target); err != nil {
		s.detail, s.noRoom = err.Error(), hasCode(err, diskFullCode)
		s.follows = p.follows(ctx, target)
		// Full of clients is not out of service.
		s.ready = hasCode(err, "53300") && p.last().ready
		s.facts, s.ownerSerial, s.size, s.shown = p.last().facts, p.last().ownerSerial, p.last().size, p.last().shown
		return s
	}
	facts, err := postgres.Observe(ctx, p.conn)
	p.hears(err)
	if err != nil {
		p.drop()
		s.detail, s.noRoom = err.Error(), hasCode(err, diskFullCode)
		return s
	}
	s.facts, s.ready, s.shown, s.restOld = facts, true, shownBy(p.conn.PgConn().Conn()), p.restOld
	if s.ownerSerial, err = p.owner(ctx, target, facts); err != nil {
		s.detail, s.noRoom = err.Error(), hasCode(err, diskFullCode)
	}
	usage, measured := p.usage(ctx, target)
	s.size = usage.Bytes
	s.facts.StorageFull = p.holdStorage(ctx, target, facts, usage, measured)
	s.stuck, s.stuckSince = p.waits.look(s.at, facts.Waiting)
	p.tellWaits(s)
	return s
}

// follows: the server says on its private socket that it is a standby.
func (p *prober) follows(ctx context.Context, target member.Assignment) (recovery bool) {
	conn, err := dial.Admin(ctx, p.host.Agent, target)
	if err != nil {
		return false
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&recovery)
	return err == nil && recovery
}

// tellWaits leaves word in the log of commits that begin to wait long, and of their end.
func (p *prober) tellWaits(s sight) {
	before := p.last().stuck
	switch {
	case s.stuck > 0 && before == 0:
		p.host.Log.Warn("commits wait for a synchronous standby", "member", p.id, "commits", s.stuck, "since", s.stuckSince)
	case s.stuck == 0 && before > 0:
		p.host.Log.Info("no commit waits for a synchronous standby any more", "member", p.id)
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
func (p *prober) login(ctx context.Context, target member.Assignment) error {
	if p.conn != nil && !p.conn.IsClosed() && time.Since(p.loggedIn) < p.patience(target) {
		return nil
	}
	p.drop()
	config, err := dial.Monitor(p.host.Agent, target)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	p.hears(err)
	if err != nil {
		return fmt.Errorf("log in to %s: %w", p.id, err)
	}
	p.conn, p.loggedIn = conn, time.Now()
	p.restOld = dial.ShowsOther(ctx, p.host.Agent, target)
	return nil
}

// patience is how long a login is good for: not long when the server is about to
// show the certificate of another authority.
func (p *prober) patience(target member.Assignment) time.Duration {
	if p.last().shown.authority != target.Authority {
		return probeEvery / 2
	}
	return loginEvery
}

// shownBy is what the certificate of a connection's server says.
func shownBy(conn net.Conn) shown {
	t, ok := conn.(*tls.Conn)
	if !ok || len(t.ConnectionState().PeerCertificates) == 0 {
		return shown{}
	}
	leaf := t.ConnectionState().PeerCertificates[0]
	return shown{certs.AuthorityOf(leaf), leaf.NotAfter.UTC()}
}

// owner sets the master user up on a primary, once for each serial.
func (p *prober) owner(ctx context.Context, target member.Assignment, facts postgres.Facts) (int64, error) {
	serial, err := postgres.OwnerSerial(ctx, p.conn)
	if err != nil || facts.InRecovery || serial >= target.Owner.Serial || target.Owner.Name == "" {
		return serial, err
	}
	conn, err := dial.Admin(ctx, p.host.Agent, target)
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

// Package drivers has the servers of a cluster answer what AWS's drivers ask: which instances there
// are, and which of them writes. A primary is given the functions, in every database. Every member's
// server is told what etcd says of the others: as soon as it changes, and else every two seconds, as a
// word holds for five. A watch says it, so that members at rest read nothing. The primary of an instance that was made
// of a cluster's data loses what has drivers take it for one. Nothing of it is needed for the database
// to work, so nothing waits for it.
package drivers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/probe"
	"howdah/internal/host/database/visitor"
	"howdah/internal/model/member"
)

const (
	// every is how often a member is looked at.
	every = time.Second
	// beat is how often a server is told what has not changed. What it is told holds for five seconds
	// (drivers.sql), and may be a second old by then: see state.Cache.Heard.
	beat = 2 * time.Second
	// within is how long an answer is waited for.
	within = 5 * time.Second
	// againEvery is how often it looks for databases that do not answer yet.
	againEvery = 5 * time.Second
	// failedEvery is how often it tries again to have an instance forget that it was a cluster.
	failedEvery = time.Minute
	// keep is for how long a member is told of that nobody sees any more: drivers leave it out then.
	keep = 5 * time.Minute
)

// Keeper sees to one member.
type Keeper struct {
	agent *agent.Agent
	id    string
	probe *probe.Prober

	// All below belongs to the goroutine of Run.
	conn  *pgx.Conn // as rdsadmin, on the platform's database
	sight *sight    // of the cluster; nil: it belongs to none, or etcd is not connected
	seen  member.Seen
	told  member.Seen // what the server was told; zero: nothing
	again time.Time   // when it looks for databases next
	plain bool        // it is the primary of an instance, and answers drivers nothing
	visit visitor.Visitor
	wrong string // what was told in the log last
}

// New returns the keeper of a member, which a prober looks at.
func New(a *agent.Agent, id string, p *probe.Prober) *Keeper {
	return &Keeper{agent: a, id: id, probe: p}
}

// Run sees to it until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	defer k.drop()
	defer k.close()
	for k.wait(ctx) {
		target, sight := k.probe.Target(), k.probe.Last()
		if target.Topology == nil && isInstance(target) && sight.Ready && !sight.Facts.InRecovery {
			k.close()
			k.complain(ctx, k.forget(ctx, target))
			continue
		}
		k.plain = false
		if target.Topology == nil || !sight.Ready {
			k.drop()
			if k.again = (time.Time{}); target.Topology == nil {
				k.close()
			}
			continue
		}
		err := k.tell(ctx, target)
		if err == nil && !sight.Facts.InRecovery && !time.Now().Before(k.again) {
			k.again = time.Now().Add(againEvery)
			err = k.prepare(ctx, target)
		}
		k.complain(ctx, err)
	}
}

// complain leaves word of what goes wrong, once. That no primary has made the functions yet is no
// error: it is about to.
func (k *Keeper) complain(ctx context.Context, err error) {
	text := ""
	if err != nil && !errors.Is(err, postgres.ErrNoTopology) {
		text = err.Error()
	}
	if text != "" && text != k.wrong && ctx.Err() == nil {
		k.agent.Log.Warn("what drivers ask is not answered as it should be", "member", k.id, "error", text)
	}
	k.wrong = text
}

// drop ends the session. The next server may have been told nothing.
func (k *Keeper) drop() {
	if k.conn != nil {
		visitor.HangUp(k.conn)
		k.conn = nil
	}
	k.told = member.Seen{}
}

// isInstance reports whether a member's database is an instance, and no cluster. A control plane of an
// older release says nothing of a cluster's topology.
func isInstance(target member.Assignment) bool { return strings.HasPrefix(target.Scope, "db-") }

// forget has the databases of an instance, whose data may be those of a cluster, answer drivers no more.
// A primary is looked at until it is done once.
func (k *Keeper) forget(ctx context.Context, target member.Assignment) (err error) {
	if k.plain || time.Now().Before(k.again) {
		return nil
	}
	k.again = time.Now().Add(againEvery)
	defer k.drop()
	defer func() {
		if err != nil {
			k.again = time.Now().Add(failedEvery)
		}
	}()
	short, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := k.connect(short, target); err != nil {
		return err
	}
	all, err := postgres.FormerDrivers(short, k.conn)
	done, bad := k.visit.Round(ctx, k.agent, target, k.conn, all, 3*within, postgres.RemoveDrivers)
	if err = errors.Join(err, bad); ctx.Err() != nil {
		return err
	}
	if k.plain = err == nil && len(done) == len(all); !k.plain || len(all) == 0 {
		return err
	}
	ending, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return postgres.DriversRemoved(ending, k.conn)
}

// tell tells the server what etcd says. While etcd does not answer, the server goes by what it knows
// itself. On a primary, the first look makes what is called here.
func (k *Keeper) tell(whole context.Context, target member.Assignment) error {
	ctx, cancel := context.WithTimeout(whole, within)
	defer cancel()
	news := k.look(whole, target.Scope)
	if err := k.connect(ctx, target); err != nil || !news {
		return err
	}
	err := postgres.SetSeen(ctx, k.conn, k.seen)
	if errors.Is(err, postgres.ErrNoTopology) {
		return nil
	}
	if err != nil {
		k.drop()
		return err
	}
	k.told = k.seen
	return nil
}

// look takes what the watch knows, and reports whether the server has to be told.
func (k *Keeper) look(ctx context.Context, scope string) bool {
	if k.sight == nil && k.agent.Store != nil {
		k.sight = watch(ctx, k.agent.Store.Client, k.agent.Log, scope)
	}
	if k.sight == nil {
		return false
	}
	leader, running, at := k.sight.now()
	if at.IsZero() || !at.After(k.seen.At) {
		return false // etcd has said nothing since
	}
	k.seen = next(k.seen, leader, running, at.UTC())
	return k.told.At.IsZero() || at.Sub(k.told.At) >= beat || leader != k.told.Leader || !sameTimes(k.seen, k.told, running)
}

// sameTimes reports whether those that run now are those that ran when the server was told last.
func sameTimes(now, told member.Seen, running []string) bool {
	ran := 0
	for name, at := range told.Members {
		if at.Equal(told.At) {
			ran++
			if !slices.Contains(running, name) {
				return false
			}
		}
	}
	return ran == len(running) && now.Writer == told.Writer
}

// next is what is seen after a look.
func next(before member.Seen, leader string, running []string, now time.Time) member.Seen {
	s := member.Seen{At: now, Leader: leader, Writer: before.Writer, WriterAt: before.WriterAt, Members: map[string]time.Time{}}
	maps.Copy(s.Members, before.Members)
	maps.DeleteFunc(s.Members, func(_ string, at time.Time) bool { return now.Sub(at) > keep })
	for _, name := range running {
		s.Members[name] = now
	}
	if leader != "" {
		s.Writer, s.WriterAt = leader, now
	}
	return s
}

// wait waits for the next look: what changes in the cluster does not wait. It is false when ctx ends.
func (k *Keeper) wait(ctx context.Context) bool {
	timer := time.NewTimer(every)
	defer timer.Stop()
	var changed <-chan struct{}
	if k.sight != nil {
		changed = k.sight.changed
	}
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// close ends the watch.
func (k *Keeper) close() {
	if k.sight != nil {
		k.sight.close()
		k.sight = nil
	}
}

// connect keeps a session in the platform's database.
func (k *Keeper) connect(ctx context.Context, target member.Assignment) (err error) {
	if k.conn == nil || k.conn.IsClosed() {
		k.conn, err = visitor.Connect(ctx, k.agent, target, "rdsadmin")
	}
	if err != nil {
		k.conn = nil
	}
	return err
}

// prepare has the databases of a primary answer that do not yet.
func (k *Keeper) prepare(ctx context.Context, target member.Assignment) error {
	if k.conn == nil {
		return nil
	}
	kind := target.Topology.Kind
	lacking, err := k.lacking(ctx, kind)
	if err != nil || len(lacking) == 0 {
		return err
	}
	done, err := k.visit.Round(ctx, k.agent, target, k.conn, lacking, 3*within, func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.SetUpDrivers(ctx, conn, kind)
	})
	if ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return errors.Join(err, postgres.DriversSetUp(ctx, k.conn, kind, done))
}

func (k *Keeper) lacking(ctx context.Context, kind member.ClusterKind) ([]postgres.Database, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	all, err := postgres.DriverDatabases(ctx, k.conn, kind)
	if err != nil && !errors.Is(err, postgres.ErrNoTopology) {
		k.drop()
	}
	return all, err
}

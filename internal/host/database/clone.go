package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/mark"
	"howdah/internal/host/database/origin"
	"howdah/internal/host/restore"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// reachWithin is how long it may take to connect to a server, or to ask a primary how far it is.
const reachWithin = 10 * time.Second

// openClone is what a clone is made of: a member of another database that runs on this host. If
// there is none, only a clone that has its copy already can go on.
func (a *Host) openClone(from member.Restore) origin.Source {
	r := a.sourceOf(from.Database)
	if r == nil {
		return origin.Source{Live: &restore.Live{Name: from.Database, Connect: func(context.Context) (*pgx.Conn, error) {
			return nil, origin.ErrSourceAway
		}}}
	}
	source := r.probe.Target()
	return origin.Source{Encrypted: source.Encrypted, Live: &restore.Live{
		Name: source.ID, DataDir: r.dataDir, User: r.User(),
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, reachWithin)
			defer cancel()
			conn, err := dial.Admin(ctx, a.Agent, source)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", origin.ErrSourceAway, err)
			}
			return conn, nil
		},
		Reach: func(ctx context.Context, conn *pgx.Conn) (restore.Point, error) { return a.reach(ctx, source, conn) },
	}}
}

// sourceOf is a member of a database that serves on this host, its primary if that is here. nil: none
// does.
func (a *Host) sourceOf(database string) (found *runner) {
	for _, r := range a.allRunners() {
		if r.Database() != database || r.Doomed() || r.probe.Target().ID == "" {
			continue
		}
		if found == nil || !r.probe.Last().Facts.InRecovery {
			found = r
		}
	}
	return found
}

// errNoPrimary says that nobody can say how far a copy of a database has to go.
var errNoPrimary = errors.New("its database has no primary now")

// reach is a position that is not before anything that was acknowledged to clients until now. Whoever
// holds the leader's key says it. The key is read last: a primary that has lost it may not know that
// another one acknowledges writes.
func (a *Host) reach(ctx context.Context, source member.Assignment, conn *pgx.Conn) (to restore.Point, err error) {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	standby, at, err := flushed(ctx, conn)
	if err != nil {
		return to, err
	}
	leads, err := a.leaderOf(ctx, source.Scope)
	switch {
	case err != nil:
		return to, err
	case !standby && leads == source.Name:
		return at, nil
	case !standby || leads == "" || leads == source.Name:
		return to, errNoPrimary
	}
	primary, err := a.primaryOf(ctx, source.Scope, leads)
	if err != nil {
		return to, err
	}
	defer primary.Close(context.WithoutCancel(ctx))
	standby, at, err = flushed(ctx, primary)
	if err != nil {
		return to, err
	}
	if still, err := a.leaderOf(ctx, source.Scope); err != nil || standby || still != leads {
		return to, errors.Join(errNoPrimary, err)
	}
	return at, nil
}

// flushed asks a server whether it is a standby, and if it is none, up to where its WAL is safe.
func flushed(ctx context.Context, conn *pgx.Conn) (standby bool, at restore.Point, err error) {
	var position, file *string
	const sql = `SELECT pg_is_in_recovery(), CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn()::text END,
		CASE WHEN NOT pg_is_in_recovery() THEN pg_walfile_name(pg_current_wal_flush_lsn()) END`
	if err := conn.QueryRow(ctx, sql).Scan(&standby, &position, &file); err != nil || position == nil || file == nil {
		return standby, at, err
	}
	written, ok := mark.ParseSegment(*file)
	if !ok {
		return standby, at, fmt.Errorf("%w: %q", errNoFile, *file)
	}
	at.Timeline = written.Timeline
	at.At, err = lsn.Parse(*position)
	return standby, at, err
}

var errNoFile = errors.New("a server names a file of WAL as PostgreSQL does not")

// leaderOf is the name of the member that leads a database, or "".
func (a *Host) leaderOf(ctx context.Context, database string) (string, error) {
	if a.Store == nil {
		return "", errNoEtcd
	}
	ctx, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	l, err := fence.Read(ctx, a.Store.Client, database)
	return l.Leader, err
}

var errNoEtcd = errors.New("etcd is not connected yet")

// primaryOf connects to a member that may be on another host, as the agents that look at it do.
func (a *Host) primaryOf(ctx context.Context, database, name string) (*pgx.Conn, error) {
	state, err := a.published(ctx, database, name)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(state.ConnURL)
	if err != nil {
		return nil, fmt.Errorf("find the primary %s: %w", name, err)
	}
	host, port, err := net.SplitHostPort(at.Host)
	if err != nil {
		return nil, fmt.Errorf("find the primary %s: %w", name, err)
	}
	target := member.Assignment{Address: host}
	if target.Port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("find the primary %s: %w", name, err)
	}
	config, err := dial.Monitor(a.Agent, target)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("ask the primary %s how far it is: %w", name, err)
	}
	return conn, nil
}

// published is what the Patroni of a member says of it.
func (a *Host) published(ctx context.Context, database, name string) (patroni.MemberState, error) {
	var failure error
	said, ok := patroni.FindMember(func(key string) ([]byte, int64, bool) {
		ctx, cancel := state.Within(ctx)
		defer cancel()
		answer, err := a.Store.Client.Get(ctx, key)
		if err != nil || len(answer.Kvs) == 0 {
			failure = errors.Join(failure, err)
			return nil, 0, false
		}
		return answer.Kvs[0].Value, answer.Kvs[0].ModRevision, true
	}, database, name)
	if !ok {
		return said, errors.Join(errNoPrimary, failure)
	}
	return said, nil
}

package warmth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/visitor"
	"howdah/internal/host/pace"
	"howdah/internal/model/member"
)

// Reading from outside is for the time until PostgreSQL is started with the library. It costs both
// servers more, and pages that it reads count as used once only.
const (
	// outsideEvery is how long it rests between two rounds.
	outsideEvery = 30 * time.Second
	// outsideRate is how many blocks it reads in a second at most, as ccm.rate is by default. It is
	// less where the disk takes long.
	outsideRate = 8000
	// outsideBatch is how many blocks it reads under one lock: replay may wait for that. leadsBatch is
	// the same on a primary, where users may.
	outsideBatch, leadsBatch = 64, 16
	// stay is how long a session of it is in one database: DROP DATABASE waits for five seconds.
	stay = 2 * time.Second
	// outsideMost is how many buffers a server may have, so that the answers of both fit into memory.
	outsideMost = 1 << 19
	// outsideLag is how many bytes of WAL replay may be behind, as ccm.max_replay_lag is by default.
	outsideLag = 64 << 20
	// hotUse is how often a page was used that is hot, as ccm.min_usage is by default.
	hotUse = 3
)

var (
	errTooLarge = fmt.Errorf("its PostgreSQL runs without the library %s, and has more than %d buffers: reboot it", postgres.CacheModule, outsideMost)
	errBehind   = errors.New("replay is behind")
	errPromoted = errors.New("it has another role by now, or is to read no more")
	errNoStream = errors.New("it receives nothing from its primary")
)

// outside reads once what is hot in the primary's cache, and lacks in the standby's.
func (k *Keeper) outside(ctx context.Context, target member.Assignment) {
	hot, missing, room, err := k.compare(ctx, target)
	if err != nil {
		k.tell(&member.Cache{State: member.CacheOutside, Why: err.Error(), Never: errors.Is(err, errTooLarge)})
		return
	}
	r := round{keeper: k, open: k.opener(target), hot: count(hot), missing: count(missing), room: room, flow: k.flow()}
	r.tell("")
	why := ""
	if err := r.read(ctx, missing); err != nil {
		why = err.Error()
	}
	r.tell(why)
}

// compare asks both servers. room is how many blocks the standby can take without losing others that
// it needs.
func (k *Keeper) compare(ctx context.Context, target member.Assignment) (hot, missing map[postgres.File]postgres.Blocks, room int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := k.connect(ctx, target); err != nil {
		return nil, nil, 0, err
	}
	defer func() {
		if err != nil {
			k.drop()
		}
	}()
	buffers, cold, err := postgres.Room(ctx, k.conn)
	if err != nil {
		return nil, nil, 0, err
	}
	if buffers > outsideMost {
		return nil, nil, 0, errTooLarge
	}
	if hot, err = k.upstream(ctx); err != nil {
		return nil, nil, 0, err
	}
	have, err := postgres.Cached(ctx, k.conn, 0)
	if err != nil {
		return nil, nil, 0, err
	}
	missing = lacks(hot, have)
	// What was read from outside counts as used once, as what nobody needs. So much of the cache stays
	// free of it that no round reads in place of what the last one did.
	return hot, missing, min(cold*9/10, buffers*9/10-(count(hot)-count(missing))), nil
}

// lacks returns what is in the one and not in the other.
func lacks(all, have map[postgres.File]postgres.Blocks) map[postgres.File]postgres.Blocks {
	missing := map[postgres.File]postgres.Blocks{}
	for f, blocks := range all {
		if b := blocks.Without(have[f]); len(b) > 0 {
			missing[f] = b
		}
	}
	return missing
}

// upstream asks the primary that a standby follows what is hot there.
func (k *Keeper) upstream(ctx context.Context) (map[postgres.File]postgres.Blocks, error) {
	const sql = "SELECT sender_host, sender_port FROM pg_catalog.pg_stat_wal_receiver WHERE status = 'streaming'"
	var host string
	var port int
	err := k.conn.QueryRow(ctx, sql).Scan(&host, &port)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errNoStream
	}
	if err != nil {
		return nil, err
	}
	client, err := k.agent.Identity.ClientTLS()
	if err != nil {
		return nil, err
	}
	config, err := dial.Config(host, port, "rdsmon", client)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("ask the primary at %s: %w", net.JoinHostPort(host, strconv.Itoa(port)), err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return postgres.Cached(ctx, conn, hotUse)
}

// round is one reading of what is missing.
type round struct {
	keeper *Keeper
	// open connects to a database, as rdsadmin.
	open               func(ctx context.Context, database string) (*pgx.Conn, error)
	hot, missing, room int64
	// flow says how long it rests after a batch.
	flow *pace.Flow
	// leads says that it is a primary, which reads again what it had before it was started.
	leads bool
	// looked is when it was counted last how much of a primary's cache nobody would miss.
	looked time.Time
}

func (k *Keeper) opener(target member.Assignment) func(context.Context, string) (*pgx.Conn, error) {
	return func(ctx context.Context, database string) (*pgx.Conn, error) { return k.admin(ctx, target, database) }
}

func (r *round) tell(why string) {
	if r.leads {
		return
	}
	c := member.Cache{State: member.CacheOutside, Why: why, Percent: 100, Known: true}
	if r.hot > 0 {
		c.Percent = 100 * float64(r.hot-r.missing) / float64(r.hot)
	}
	r.keeper.tell(&c)
}

// read reads one database after the other.
func (r *round) read(ctx context.Context, missing map[postgres.File]postgres.Blocks) error {
	names := map[uint32]string{0: "rdsadmin"}
	databases, err := r.databases(ctx)
	if err != nil {
		return err
	}
	for _, d := range databases {
		names[d.OID] = d.Name
	}
	var wanted []uint32
	for f := range missing {
		// Others are gone, or let nobody in.
		if names[f.Database] != "" && !slices.Contains(wanted, f.Database) {
			wanted = append(wanted, f.Database)
		}
	}
	slices.Sort(wanted)
	var left error
	for _, oid := range wanted {
		err := r.readDatabase(ctx, names[oid], missing, postgres.FilesOf(missing, oid))
		// One that is dropped, or lets nobody in, does not keep the others.
		if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && !refused {
			return err
		}
		left = cmp.Or(left, err)
	}
	return left
}

func (r *round) databases(ctx context.Context) ([]postgres.Database, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return postgres.Databases(ctx, r.keeper.conn)
}

// visit is a session in a database, which goes and comes again: whoever drops the database, or copies it,
// waits for all that are in it.
type visit struct {
	conn  *pgx.Conn
	until time.Time
}

func (v *visit) leave() {
	if v.conn != nil {
		visitor.HangUp(v.conn)
		v.conn = nil
	}
}

// enter gives a session that has not been there for too long.
func (r *round) enter(ctx context.Context, v *visit, name string) (err error) {
	if v.conn != nil && time.Now().Before(v.until) {
		return nil
	}
	v.leave()
	v.conn, err = r.open(ctx, name)
	v.until = time.Now().Add(stay)
	return err
}

func (r *round) readDatabase(ctx context.Context, name string, missing map[postgres.File]postgres.Blocks, files []postgres.File) error {
	var v visit
	defer v.leave()
	size := int64(outsideBatch)
	if r.leads {
		size = leadsBatch
	}
	for _, f := range files {
		for _, batch := range missing[f].Batches(size) {
			if err := r.mayRead(ctx, batch.Count()); err != nil {
				return err
			}
			if err := r.enter(ctx, &v, name); err != nil {
				return err
			}
			began := time.Now()
			n, err := load(ctx, v.conn, f, batch)
			if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && !refused || v.conn.IsClosed() {
				return err
			}
			if err != nil {
				break // its relation is locked, or is not here: the next round sees to it
			}
			r.missing, r.room = r.missing-n, r.room-n
			r.tell("")
			if !r.rest(ctx, &v, r.flow.Rest(n, time.Since(began), time.Now())) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// rest waits, outside of the database if it is for long. It reports false if ctx ends.
func (r *round) rest(ctx context.Context, v *visit, long time.Duration) bool {
	if time.Now().Add(long).After(v.until) {
		v.leave()
	}
	return pace.Sleep(ctx, long)
}

// load reads a batch. A server that stands still is not waited for.
func load(ctx context.Context, conn *pgx.Conn, f postgres.File, batch postgres.Blocks) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*within)
	defer cancel()
	return postgres.Load(ctx, conn, f, batch)
}

// lookEvery is how often a primary's cache is looked at: its sessions fill it meanwhile.
const lookEvery = 10 * time.Second

// look finds out how much of a primary's cache nobody would miss by now. A tenth of it stays free of what
// is read again.
func (r *round) look(ctx context.Context) error {
	if !r.leads || time.Since(r.looked) < lookEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	all, cold, err := postgres.Room(ctx, r.keeper.conn)
	if err != nil {
		return err
	}
	r.room, r.looked = min(r.room, cold-all/10), time.Now()
	return nil
}

var errNoRoom = errors.New("more is hot than its cache can take")

// mayRead reports whether so many blocks more may be read now.
func (r *round) mayRead(ctx context.Context, n int64) error {
	if err := r.look(ctx); err != nil {
		return err
	}
	if n > r.room {
		return errNoRoom
	}
	const sql = `SELECT pg_catalog.pg_is_in_recovery(),
		coalesce(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_receive_lsn(), pg_catalog.pg_last_wal_replay_lsn()), 0)::bigint`
	var standby bool
	var lag int64
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := r.keeper.conn.QueryRow(ctx, sql).Scan(&standby, &lag); err != nil {
		return err
	}
	switch target := r.keeper.probe.Target(); {
	case standby == r.leads || target.ID == "" || target.Parameters[postgres.CacheSetting] != "on":
		return errPromoted
	case lag > outsideLag:
		return errBehind
	}
	return nil
}

// flow goes on from round to round: what the disk has room for is not found out anew.
func (k *Keeper) flow() *pace.Flow {
	if k.reads == nil {
		k.reads = pace.NewFlow(outsideRate, time.Now())
	}
	return k.reads
}

func count(all map[postgres.File]postgres.Blocks) (n int64) {
	for _, blocks := range all {
		n += blocks.Count()
	}
	return n
}

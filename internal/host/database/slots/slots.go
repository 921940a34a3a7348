// Package slots lets users take changes out of a database by logical replication slots, where
// rds.logical_replication is on (extensions/howdah/src/slot.c and walsender.c). A primary is given the
// functions that users call, in every database, and is told which standbys their slots have to wait
// for. A standby drops the slots that it has of the time when it was the primary. Nothing of it is
// needed for the database to work, so nothing waits for it.
package slots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/probe"
	"howdah/internal/host/database/visitor"
	"howdah/internal/host/pace"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

const (
	// every is how often a member is looked at.
	every = time.Second
	// within is how long an answer is waited for.
	within = 5 * time.Second
	// againEvery is how often a primary is looked at for databases without the functions, and a standby
	// for slots.
	againEvery = 5 * time.Second
)

// Settings are those of a member that go with users' slots.
func Settings(as member.Assignment) map[string]string {
	if !as.Cluster.LogicalSlots {
		return nil
	}
	return map[string]string{postgres.LogicalSlots: "on"}
}

// Keeper sees to one member.
type Keeper struct {
	agent *agent.Agent
	id    string
	probe *probe.Prober

	// All below belongs to the goroutine of Run.
	conn  *pgx.Conn // as rdsadmin, on the platform's database
	again time.Time // when the next thorough look is due
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
	for pace.Sleep(ctx, every) {
		target, sight := k.probe.Target(), k.probe.Last()
		if !sight.Ready || target.Scope == "" || !target.Cluster.LogicalSlots && len(sight.Facts.Slots) == 0 {
			k.drop()
			k.again = time.Time{}
			continue
		}
		k.complain(ctx, k.look(ctx, target, sight.Facts))
	}
}

// complain leaves word of what goes wrong, once.
func (k *Keeper) complain(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != k.wrong && ctx.Err() == nil {
		k.agent.Log.Warn("logical slots of users are not as they should be", "member", k.id, "error", text)
	}
	k.wrong = text
}

func (k *Keeper) drop() {
	if k.conn != nil {
		visitor.HangUp(k.conn)
		k.conn = nil
	}
}

// look does what is due.
func (k *Keeper) look(ctx context.Context, target member.Assignment, facts postgres.Facts) error {
	due := !time.Now().Before(k.again)
	waits := target.Cluster.LogicalSlots && !facts.InRecovery && target.Major >= patroni.SlotsSurvive
	if !due && !waits {
		return nil
	}
	if err := k.connect(ctx, target); err != nil {
		return err
	}
	var err error
	if waits {
		err = k.wait(ctx, target)
	}
	if !due || err != nil {
		return err
	}
	k.again = time.Now().Add(againEvery)
	switch {
	case facts.InRecovery:
		// A standby that streams has another primary. One that does not may become it again.
		if facts.Streaming && target.Cluster.Upstream == nil {
			err = k.tidy(ctx, "they are of the time when it was the primary", postgres.DropStaleSlots)
		}
	case target.Cluster.LogicalSlots:
		err = k.prepare(ctx, target)
	default:
		err = k.tidy(ctx, "rds.logical_replication was turned off", postgres.DropUserSlots)
	}
	return err
}

func (k *Keeper) tidy(ctx context.Context, why string, drop func(context.Context, *pgx.Conn) ([]string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	dropped, err := drop(ctx, k.conn)
	if len(dropped) > 0 {
		k.agent.Log.Info("dropped logical slots", "member", k.id, "slots", dropped, "why", why)
	}
	if err != nil {
		k.drop()
	}
	return err
}

// wait has slots that survive a failover wait for the standbys that may be promoted. While etcd does
// not answer, they wait for those that were known last.
func (k *Keeper) wait(ctx context.Context, target member.Assignment) error {
	if k.agent.Store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answer, err := k.agent.Store.Client.Get(ctx, patroni.SyncKey(target.Scope))
	if err != nil {
		return fmt.Errorf("read which standbys of %s are in sync: %w", target.Scope, err)
	}
	var value []byte
	for _, kv := range answer.Kvs {
		value = kv.Value
	}
	sync, err := patroni.ParseSync(value)
	if err != nil {
		return err
	}
	if err := postgres.WaitForStandbys(ctx, k.conn, strings.Join(waitFor(target, sync), ", ")); err != nil {
		k.drop()
		return err
	}
	return nil
}

// waitFor lists the slots of the standbys that may be promoted.
func waitFor(target member.Assignment, sync patroni.Sync) []string {
	var all []string
	for _, name := range sync.Standbys {
		if name == target.Name {
			continue
		}
		known := name
		if target.OwnName {
			known = patroni.OwnName(target.Scope, name)
		}
		all = append(all, patroni.SlotName(known))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// connect keeps a session in the platform's database.
func (k *Keeper) connect(ctx context.Context, target member.Assignment) (err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if k.conn == nil || k.conn.IsClosed() {
		k.conn, err = visitor.Connect(ctx, k.agent, target, "rdsadmin")
	}
	if err != nil {
		k.conn = nil
	}
	return err
}

// prepare gives the functions to the databases of a primary that lack them.
func (k *Keeper) prepare(ctx context.Context, target member.Assignment) error {
	lacking, err := k.lacking(ctx)
	if err != nil || len(lacking) == 0 {
		return err
	}
	done, err := k.visit.Round(ctx, k.agent, target, k.conn, lacking, 3*within, postgres.SetUpSlots)
	if ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return errors.Join(err, postgres.SlotsSetUp(ctx, k.conn, done))
}

func (k *Keeper) lacking(ctx context.Context) ([]postgres.Database, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	all, err := postgres.SlotDatabases(ctx, k.conn)
	if err != nil && !errors.Is(err, postgres.ErrNoSlots) {
		k.drop()
	}
	return all, err
}

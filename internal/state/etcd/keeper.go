package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// lookEvery is the pause between two looks of a keeper at its own member. Such a look costs
	// nothing.
	lookEvery = 250 * time.Millisecond
	// surveyEvery is the pause between two questions to all members while nothing is wrong.
	surveyEvery = 15 * time.Second
	// historyKept is how much history a compaction leaves while no alarm stands. Gates look there
	// for what Patroni has overwritten.
	historyKept = 3 * time.Minute
	// deedTimeout bounds a deed. A deed may copy a large database.
	deedTimeout = 2 * time.Minute
)

// Keeper keeps etcd's database small. It compacts by size, defragments one member after the other
// if that pays, and ends the alarm that stops all writes once there is room. It works at the member
// that leads raft, and needs no write before it begins: while the alarm stands, nobody can be
// elected for anything.
type Keeper struct {
	Member      *Member
	Credentials Credentials // for the other members
	// Busy reports whether a failover is under way. Then what is not urgent waits. It may be nil.
	Busy func(ctx context.Context) bool
	Log  *slog.Logger

	mu          sync.Mutex // held while a deed is decided and done
	compacted   int64
	compactedAt time.Time
	left        int64
	defragged   map[uint64]time.Time
	history     []mark // the oldest first
	surveyed    time.Time
}

// mark says which revision was the newest at a time.
type mark struct {
	at       time.Time
	revision int64
}

// Run works until ctx ends. It logs errors: the next look sees again what was not done.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if !k.Member.Leading() || !k.due() {
			continue
		}
		if _, err := k.step(ctx, 0); err != nil && ctx.Err() == nil {
			k.Log.Warn("keep etcd small", "error", err)
			k.rest(ctx)
		}
	}
}

// Scarce reports whether only the reserve for failovers is left of the own member's quota, or
// nothing at all.
func (k *Keeper) Scarce() bool {
	s := k.Member.server.Server
	return len(k.alarms()) > 0 || s.Backend().Size() >= Reserve(s.Cfg.QuotaBackendBytes)
}

// rest pauses, so that an error is not met four times a second.
func (k *Keeper) rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// due reports whether the own member shows that something may have to be done, or whether the
// others were not asked for some time.
func (k *Keeper) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.remember(now)
	b, quota := k.Member.server.Server.Backend(), k.Member.server.Server.Cfg.QuotaBackendBytes
	if len(k.alarms()) == 0 && now.Sub(k.surveyed) < surveyEvery && b.Size() < Reserve(quota) && b.SizeInUse()-k.left < quota/32 {
		return false
	}
	k.surveyed = now
	return true
}

// remember keeps one mark a second, for as long as history is kept.
func (k *Keeper) remember(now time.Time) {
	if n := len(k.history); n > 0 && now.Sub(k.history[n-1].at) < time.Second {
		return
	}
	k.history = append(k.history, mark{now, k.Member.server.Server.KV().Rev()})
	for len(k.history) > 1 && now.Sub(k.history[1].at) >= historyKept {
		k.history = k.history[1:]
	}
}

// old returns a revision from before the history that is kept, or 0.
func (k *Keeper) old(now time.Time) int64 {
	if len(k.history) == 0 || now.Sub(k.history[0].at) < historyKept {
		return 0
	}
	return k.history[0].revision
}

// Plan returns what Mend would do, as far as can be told before. It changes nothing.
func (k *Keeper) Plan(ctx context.Context) ([]Deed, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	look, err := k.look(ctx, k.Member.server.Server.KV().Rev())
	if err != nil {
		return nil, err
	}
	return look.Plan(), nil
}

// Mend does everything that makes room, however little that gains, because a person asked for it.
// It returns what was done, also with an error.
func (k *Keeper) Mend(ctx context.Context) (done []Deed, err error) {
	tried := map[string]bool{}
	asked := k.Member.server.Server.KV().Rev()
	for ctx.Err() == nil {
		deed, err := k.step(ctx, asked)
		if err != nil {
			return done, err
		}
		if deed.Kind == Nothing || tried[deed.id()] {
			return done, nil
		}
		tried[deed.id()] = true
		done = append(done, deed)
	}
	return done, ctx.Err()
}

// Compact forgets all history now.
func (k *Keeper) Compact(ctx context.Context) (Deed, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	deed := Deed{Kind: Compact, Revision: k.Member.server.Server.KV().Rev(), Why: whyAsked}
	return deed, k.compact(ctx, deed.Revision)
}

// Defrag makes a member give back what it does not use. The member does not answer meanwhile.
func (k *Keeper) Defrag(ctx context.Context, name string) (Deed, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	members, err := k.Survey(ctx)
	if err != nil {
		return Deed{}, err
	}
	for _, c := range members {
		if c.Name == name {
			return Deed{Kind: Defrag, Member: c, Why: whyAsked}, k.defrag(ctx, c)
		}
	}
	return Deed{}, fmt.Errorf("etcd %s: %w", name, ErrNoMember)
}

// Disarm ends the alarm that stops all writes. It comes back with the next write if
// there is still no room.
func (k *Keeper) Disarm(ctx context.Context) (Deed, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Deed{Kind: Disarm, Why: whyAsked}, k.disarm(ctx)
}

// ErrNoMember says that no member of etcd has this name.
var ErrNoMember = errors.New("there is no such member")

const whyAsked = "asked for"

// step decides and does one deed. asked is which revision was the newest when a person asked for it, or 0.
func (k *Keeper) step(ctx context.Context, asked int64) (Deed, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, deedTimeout)
	defer cancel()
	look, err := k.look(ctx, asked)
	if err != nil {
		return Deed{}, err
	}
	deed := look.Next()
	if deed.Kind == Nothing {
		return deed, nil
	}
	began := time.Now()
	if err := k.do(ctx, deed); err != nil {
		return deed, fmt.Errorf("%s: %w", deed, err)
	}
	k.Log.Info("kept etcd small", "deed", deed.String(), "took", time.Since(began).Round(time.Millisecond).String())
	return deed, nil
}

func (k *Keeper) look(ctx context.Context, asked int64) (Look, error) {
	members, err := k.Survey(ctx)
	if err != nil {
		return Look{}, fmt.Errorf("ask the members of etcd how they are: %w", err)
	}
	now := time.Now()
	return Look{
		Now: now, Own: k.own(), Members: members, Revision: k.Member.server.Server.KV().Rev(), Old: k.old(now),
		Compacted: k.compacted, CompactedAt: k.compactedAt, Left: k.left, Defragged: k.defragged,
		Busy: k.Busy != nil && k.Busy(ctx), Asked: asked,
	}, nil
}

func (k *Keeper) do(ctx context.Context, deed Deed) error {
	switch deed.Kind {
	case Compact:
		return k.compact(ctx, deed.Revision)
	case Defrag:
		return k.defrag(ctx, deed.Member)
	case Handover:
		return k.handOver(ctx, deed.Member)
	case Disarm:
		return k.disarm(ctx)
	case Nothing:
	}
	return nil
}

// compact waits until the history is gone from this member. If somebody else compacted further,
// that is as good.
func (k *Keeper) compact(ctx context.Context, revision int64) error {
	if revision <= 1 {
		return nil
	}
	if _, err := k.Member.Client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil && !isCompacted(err) {
		return err
	}
	backend := k.Member.server.Server.Backend()
	backend.ForceCommit() // what was freed is counted with the commit
	k.compacted, k.compactedAt, k.left = revision, time.Now(), backend.SizeInUse()
	return nil
}

// defrag tells the own member directly. Over its client in this process etcd 3.7 fails, because it
// has nobody to tell that the member does not answer meanwhile.
func (k *Keeper) defrag(ctx context.Context, c Condition) error {
	if k.defragged == nil {
		k.defragged = map[uint64]time.Time{}
	}
	k.defragged[c.ID] = time.Now()
	if c.ID == k.own() {
		return k.Member.server.Server.Defragment()
	}
	return k.at(ctx, c, func(client *clientv3.Client, url string) error {
		_, err := client.Defragment(ctx, url)
		return err
	})
}

func (k *Keeper) handOver(ctx context.Context, to Condition) error {
	server := k.Member.server.Server
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if k.Member.Leading() {
		return server.MoveLeader(ctx, k.own(), to.ID)
	}
	members, err := k.Survey(ctx)
	if err != nil {
		return err
	}
	for _, c := range members {
		if c.Leader {
			return k.at(ctx, c, func(client *clientv3.Client, _ string) error {
				_, err := client.MoveLeader(ctx, to.ID)
				return err
			})
		}
	}
	return nil
}

// disarm ends the alarms of all members, also of members that no longer exist.
func (k *Keeper) disarm(ctx context.Context) error {
	for id := range k.alarms() {
		_, err := k.Member.Client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: id, Alarm: etcdserverpb.AlarmType_NOSPACE})
		if err != nil {
			return err
		}
	}
	return nil
}

func isCompacted(err error) bool {
	return errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted)
}

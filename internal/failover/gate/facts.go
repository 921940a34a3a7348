package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/model/regain"
	"howdah/internal/state"
)

// facts is what etcd says at one moment.
type facts struct {
	leader         string
	leaderRevision int64
	sync           []byte // the key as it is
	syncRevision   int64
	syncVersion    int64
	// old is the synchronous state as the primary before left it, and oldSync its text.
	old         patroni.Sync
	oldSync     []byte
	oldRevision int64
	// overwritten reports whether Patroni has already written /sync anew for this gate's member.
	overwritten bool
	cases       []record[fence.Case]
	cuts        []record[fence.CutReport]
	deaths      []record[fence.Death]
	// passed records the member that a gate let through last; nil if there is no record.
	passed *record[fence.Passed]
	// lead is who served as primary when the control plane looked last; "" if nobody did yet.
	lead         string
	leadRevision int64
	places       map[string]place // by member
	// strange reports whether the home was restored and either does not know this database or
	// has not taken it over yet.
	strange bool
	// claims is what is known of timelines.
	claims claims
	// named lists the names by which Patroni knows the members: from their own keys, and from
	// what the last primary wrote for the time without etcd.
	named []string
}

// place holds the addresses of a member's Patroni and of its PostgreSQL.
type place struct{ api, postgres string }

type record[T any] struct {
	key      string
	text     string
	value    T
	revision int64
}

// read takes one look at everything.
func (g *gate) read(ctx context.Context) (facts, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var claimed claims
	var claimedErr error
	var beside sync.WaitGroup
	beside.Go(func() { claimed, claimedErr = g.claimed(ctx) })
	answer, err := g.Client.Txn(ctx).Then(
		clientv3.OpGet(patroni.LeaderKey(g.Database)),
		clientv3.OpGet(patroni.SyncKey(g.Database)),
		clientv3.OpGet(state.FencePrefix(g.Database), clientv3.WithPrefix()),
		clientv3.OpGet(state.Cuts(g.Database), clientv3.WithPrefix()),
		clientv3.OpGet(state.DeathPrefix(g.Database), clientv3.WithPrefix()),
		clientv3.OpGet(state.Passed(g.Database)),
		clientv3.OpGet(patroni.MembersPrefix(g.Database), clientv3.WithPrefix()),
		clientv3.OpGet(state.Lead(g.Database)),
		clientv3.OpGet(patroni.FailsafeKey(g.Database)),
		clientv3.OpGet(state.Restored(), clientv3.WithCountOnly()),
		clientv3.OpGet(state.Layout(g.Database), clientv3.WithCountOnly()),
		clientv3.OpGet(state.Hold(g.Database), clientv3.WithCountOnly()),
	).Commit()
	beside.Wait()
	if err = cmp.Or(err, claimedErr); err != nil {
		return facts{}, fmt.Errorf("ask etcd who led %s: %w", g.Database, err)
	}
	kvs := func(i int) *clientv3.GetResponse {
		return (*clientv3.GetResponse)(answer.Responses[i].GetResponseRange())
	}
	f := facts{places: map[string]place{}, claims: claimed}
	if leader := kvs(0).Kvs; len(leader) > 0 {
		f.leader, f.leaderRevision = patroni.MemberName(string(leader[0].Value)), leader[0].ModRevision
	}
	if sync := kvs(1).Kvs; len(sync) > 0 {
		f.sync, f.syncRevision, f.syncVersion = sync[0].Value, sync[0].ModRevision, sync[0].Version
	}
	if f.cases, err = decode[fence.Case](kvs(2)); err != nil {
		return facts{}, err
	}
	if f.cuts, err = decode[fence.CutReport](kvs(3)); err != nil {
		return facts{}, err
	}
	if f.deaths, err = decode[fence.Death](kvs(4)); err != nil {
		return facts{}, err
	}
	passed, err := decode[fence.Passed](kvs(5))
	if err != nil {
		return facts{}, err
	}
	if len(passed) > 0 {
		f.passed = &passed[0]
	}
	for _, kv := range kvs(6).Kvs {
		name := state.Tail(string(kv.Key), patroni.MembersPrefix(g.Database))
		f.named = append(f.named, name)
		var m patroni.MemberState
		if m, err = patroni.ParseMember(kv.Value); err == nil {
			f.places[patroni.MemberName(name)] = place{api: m.APIURL, postgres: address(m.ConnURL)}
		}
	}
	// Written by reconcile; this is the part that concerns gates.
	leads, err := decode[struct {
		Member string `json:"member"`
	}](kvs(7))
	if err != nil {
		return facts{}, err
	}
	if len(leads) > 0 {
		f.lead, f.leadRevision = leads[0].value.Member, leads[0].revision
	}
	f.strange = kvs(9).Count > 0 && kvs(10).Count == 0 || kvs(11).Count > 0
	if failsafe, err := decode[map[string]string](kvs(8)); err == nil && len(failsafe) > 0 {
		f.named = slices.AppendSeq(f.named, maps.Keys(failsafe[0].value))
	}
	return f, g.findOld(ctx, &f)
}

func decode[T any](answer *clientv3.GetResponse) ([]record[T], error) {
	var all []record[T]
	for _, kv := range answer.Kvs {
		r := record[T]{key: string(kv.Key), text: string(kv.Value), revision: kv.ModRevision}
		if err := json.Unmarshal(kv.Value, &r.value); err != nil {
			return nil, fmt.Errorf("decode %s: %w", kv.Key, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// mostSteps bounds how far back a synchronous state is looked for: one step for each
// time that Patroni wrote its own before a gate which was killed.
const mostSteps = 64

// findOld finds the synchronous state that the primary before left. In priority mode
// Patroni has put its own in its place by now, without a standby (ha.py,
// process_sync_replication_prepromote): what was there before is in etcd's history.
func (g *gate) findOld(ctx context.Context, f *facts) error {
	text, revision, version := f.sync, f.syncRevision, f.syncVersion
	skipped := false
	for range mostSteps {
		s, err := patroni.ParseSync(text)
		if err != nil {
			return fmt.Errorf("synchronous state of %s: %w", g.Database, err)
		}
		if s.Leader == regain.Held && f.old.Leader == g.Name {
			return nil // the database was taken over, with this member as its primary
		}
		switch {
		case s.Leader != g.Name && f.neverLed(s):
			skipped = true
		case s.Leader != g.Name || len(s.Standbys) > 0:
			f.old, f.oldSync, f.oldRevision = s, text, revision
			f.overwritten = revision != f.syncRevision
			return nil
		default:
			f.old, f.oldSync, f.oldRevision = s, text, revision
			if f.passed != nil && f.passed.value.Member == g.Name && revision < f.passed.revision {
				return nil // it was let through with this state: it is the primary that left it
			}
		}
		if version <= 1 && skipped {
			return g.guessOld(f)
		}
		if version <= 1 {
			return nil // there was none before
		}
		before, err := g.Client.Get(ctx, patroni.SyncKey(g.Database), clientv3.WithRev(revision-1))
		if errors.Is(err, rpctypes.ErrCompacted) {
			return g.guessOld(f)
		}
		if err != nil {
			return fmt.Errorf("ask etcd for the synchronous state before: %w", err)
		}
		if len(before.Kvs) == 0 {
			return nil
		}
		kv := before.Kvs[0]
		text, revision, version = kv.Value, kv.ModRevision, kv.Version
	}
	return fmt.Errorf("the synchronous state before that of %s is not to be found", g.Name)
}

// neverLed reports whether a synchronous state is one that Patroni wrote for another member before
// that member's gate, which then refused or was killed. Such a state names no standbys, and a
// member that was not promoted. A member that was let through is on record (Passed) until it is
// known as the one that serves (Lead). So one that is neither was not promoted since the one that
// serves.
func (f *facts) neverLed(s patroni.Sync) bool {
	return len(s.Standbys) == 0 && s.Leader != "" && s.Leader != regain.Held && f.lead != "" && s.Leader != f.lead &&
		(f.passed == nil || f.passed.value.Member == f.lead)
}

// guessOld finds the old synchronous state when etcd has compacted the history that held it.
// The state in etcd may be this member's own, from when it led alone. Or Patroni wrote it
// before a gate that was then killed. The member that served last tells the two apart. If
// another member served last, its standbys are unknown: guessOld then assumes that it had
// none, which lets only that member through and is safe in any case.
func (g *gate) guessOld(f *facts) error {
	switch {
	case f.lead == "" || f.passed != nil && f.passed.value.Member != f.lead:
		return fmt.Errorf("etcd has forgotten which primary %s had before %s: %w", g.Database, g.Name, ErrRefused)
	case f.lead == g.Name:
		return nil
	}
	text, err := json.Marshal(map[string]any{"leader": f.patroniName(g.Database, f.lead), "sync_standby": nil})
	if err != nil {
		return err
	}
	f.oldSync, f.overwritten = text, true
	f.old, err = patroni.ParseSync(text)
	return err
}

// patroniName returns the name by which Patroni knows a member, which may be down. It looks in
// f.named, and otherwise returns the name that Howdah gives. A wrong name lets nobody through.
func (f facts) patroniName(database, member string) string {
	for _, name := range f.named {
		if patroni.MemberName(name) == member {
			return name
		}
	}
	return patroni.OwnName(database, member)
}

// fenced returns the synchronous standbys that no longer confirm anything to the old primary,
// and the conditions that must still hold when the promotion is let through.
func (f facts) fenced(old patroni.Sync) (members []string, conditions []clientv3.Cmp) {
	for _, d := range f.deaths {
		if d.value.Member == old.Leader && d.value.Proof.Off() {
			return slices.Clone(old.Standbys), []clientv3.Cmp{unchanged(d.key, d.revision)}
		}
	}
	for _, c := range f.cases {
		if c.value.Leadership.Leader != old.Leader || f.survived(c) {
			continue
		}
		conditions = append(conditions, unchanged(c.key, c.revision))
		if c.value.Proof.Off() {
			return slices.Clone(old.Standbys), conditions
		}
		for _, cut := range f.cuts {
			if cut.value.Case == c.value.ID && slices.Contains(old.Standbys, cut.value.Member) {
				members = append(members, cut.value.Member)
			}
		}
	}
	slices.Sort(members)
	return slices.Compact(members), conditions
}

// survived reports whether the primary that a case is about was let through again after the
// case. Such a case may remain where no control plane judges, because nobody closes it. A judge
// that was frozen may also write an outdated case again.
func (f facts) survived(c record[fence.Case]) bool {
	return f.passed != nil && f.passed.value.Before(c.value, c.revision, f.passed.revision)
}

// unsettled returns the member that a gate let through after the old primary and that nobody
// has heard of since; "" if there is none. That member may have become a primary and have
// acknowledged writes that no other member has. The old primary does not have them either: it
// comes back with a longer WAL at most. In quorum mode three writers change the synchronous
// state: consent, a new primary at its first look, and an old primary that leads on. What Patroni
// wrote for this gate's member since, because the mode has changed, says nothing.
func (f facts) unsettled(name string) string {
	if !f.pending() || f.passed.value.Member == name || f.passed.value.Member == f.old.Leader {
		return ""
	}
	return f.passed.value.Member
}

// pending reports whether the old synchronous state was written last by the consent to a promotion.
func (f facts) pending() bool { return f.passed != nil && f.passed.revision == f.oldRevision }

// another reports whether the judge found that other members may be promoted, and not this one.
func (f facts) another(name string) bool {
	for _, c := range f.cases {
		if c.value.Leadership.Leader == f.old.Leader && len(c.value.Candidates) > 0 && !slices.Contains(c.value.Candidates, name) {
			return true
		}
	}
	return false
}

func unchanged(key string, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", revision)
}

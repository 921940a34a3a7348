package gate

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit/sourcetest"
)

// dataDir is a data directory whose newest checkpoint is on a timeline, with histories.
func dataDir(t *testing.T, timeline uint32, histories ...int) string {
	t.Helper()
	dir := t.TempDir()
	control := make([]byte, 100)
	binary.NativeEndian.PutUint32(control[48:], timeline)
	err := errors.Join(os.Mkdir(filepath.Join(dir, "global"), 0o700), os.Mkdir(filepath.Join(dir, "pg_wal"), 0o700),
		os.WriteFile(filepath.Join(dir, "global", "pg_control"), control, 0o600))
	for _, n := range histories {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "pg_wal", HistoryName(n)), []byte("1\t0/3000000\tx\n"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// barredIn lists the timelines that are barred in a data directory.
func barredIn(t *testing.T, dir string) (all []int) {
	t.Helper()
	l, err := readLineage(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range slices.Sorted(maps.Keys(l.known)) {
		if text, err := os.ReadFile(filepath.Join(dir, "pg_wal", HistoryName(n))); err == nil && string(text) == Barred {
			all = append(all, n)
		}
	}
	return all
}

func TestNoTwoPromotionsTakeOneTimeline(t *testing.T) {
	t.Parallel()
	other := func(n int) *fence.Timeline { return &fence.Timeline{Number: n, Member: "m1", LeaderRevision: 7} }
	for name, c := range map[string]struct {
		timeline  uint32
		histories []int
		record    *fence.Timeline
		want      int
		barred    []int
	}{
		"the first":                      {1, nil, nil, 2, nil},
		"after one that is known":        {2, []int{2}, other(2), 3, nil},
		"received, and not yet replayed": {1, []int{2}, other(2), 3, nil},
		"after one that is not known":    {1, nil, other(2), 3, []int{2}},
		"after several":                  {2, []int{2, 4}, other(5), 6, []int{3, 5}},
		"after a home was restored":      {4, []int{2, 3, 4}, other(2), 5, nil},
		"a record that nobody believes":  {4, []int{2, 3, 4}, other(1 << 30), 5, nil},
		"the greatest of all records":    {4, nil, other(math.MaxInt), 5, nil},
		"a history that nobody wrote":    {2, []int{0x7fffffff}, other(3), 4, []int{3}},
		"one that is in the way":         {2, []int{4, 5}, other(3), 6, []int{3}},
		"far behind a record":            {1, many(2, 90), other(91), 92, []int{91}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, onlyM2)
			if c.record != nil {
				s.put(state.Put(state.Timeline("db-1"), *c.record))
			}
			dir := dataDir(t, c.timeline, c.histories...)
			number := func() int {
				t.Helper()
				if err := s.pass(func(cfg *Config) { cfg.DataDir = dir }); err != nil {
					t.Fatal(err)
				}
				record, err := state.Get[fence.Timeline](t.Context(), s.store, state.Timeline("db-1"))
				if err != nil || record.Value.Member != "m2" || record.Value.Database != "db-1" {
					t.Fatalf("%+v, %v", record.Value, err)
				}
				return record.Value.Number
			}
			if got := number(); got != c.want || !slices.Equal(barredIn(t, dir), c.barred) {
				t.Errorf("it takes %d and bars %v; want %d, %v", got, barredIn(t, dir), c.want, c.barred)
			}
			// Nothing was promoted, so nobody has used the number.
			s.raw(patroni.LeaderKey("db-1"), patroni.OwnName("db-1", "m2"))
			if got := number(); got != c.want {
				t.Errorf("it takes %d when it tries again, want %d", got, c.want)
			}
			// Somebody may have used it by now.
			s.must(os.WriteFile(filepath.Join(dir, "pg_wal", HistoryName(c.want)), []byte("1\t0/3000000\tx\n"), 0o600))
			if got := number(); got != c.want+1 {
				t.Errorf("it takes %d after the promotion, want %d", got, c.want+1)
			}
			s.must(os.Remove(filepath.Join(dir, taken)))
			if got := number(); got != c.want+2 {
				t.Errorf("it takes %d with other data, want %d", got, c.want+2)
			}
		})
	}
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// many are numbers in a row.
func many(first, last int) (all []int) {
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

// TestAGateThatWasKilledLeavesNoGap: it had taken a number, and not barred any yet.
func TestAGateThatWasKilledLeavesNoGap(t *testing.T) {
	t.Parallel()
	s := newStage(t, onlyM2)
	dir := dataDir(t, 1)
	wal := filepath.Join(dir, "pg_wal")
	s.put(state.Put(state.Timeline("db-1"), fence.Timeline{Number: 2, Member: "m1", LeaderRevision: 7}))
	s.must(os.WriteFile(wal+"-away", nil, 0o600))
	for range 3 {
		// As good as killed: it cannot bar anything.
		s.must(errors.Join(os.Remove(wal), os.Symlink(wal+"-away", wal)))
		if err := s.pass(func(cfg *Config) { cfg.DataDir = dir }); err == nil {
			t.Fatal("a gate passes that barred nothing")
		}
		s.must(os.Remove(wal))
		s.must(os.Mkdir(wal, 0o700))
		s.raw(patroni.LeaderKey("db-1"), patroni.OwnName("db-1", "m2"))
	}
	s.must(s.pass(func(cfg *Config) { cfg.DataDir = dir }))
	record, err := state.Get[fence.Timeline](t.Context(), s.store, state.Timeline("db-1"))
	if err != nil || record.Value.Number != 3 {
		t.Errorf("%+v, %v", record.Value, err)
	}
	if got := barredIn(t, dir); !slices.Equal(got, []int{2}) {
		t.Errorf("barred: %v", got)
	}
}

// TestARecordThatCannotBeRead keeps nobody from being promoted.
func TestARecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newStage(t, onlyM2)
	s.raw(state.Timeline("db-1"), `{"database":"db-1","number":"two"}`)
	dir := dataDir(t, 1)
	s.must(s.pass(func(cfg *Config) { cfg.DataDir = dir }))
	record, err := state.Get[fence.Timeline](t.Context(), s.store, state.Timeline("db-1"))
	if err != nil || record.Value.Number != 2 {
		t.Errorf("%+v, %v", record.Value, err)
	}
}

// older is a control plane of the release before, which lets nobody write the record.
type older struct{ clientv3.KV }

func (o older) Txn(ctx context.Context) clientv3.Txn { return &olderTxn{Txn: o.KV.Txn(ctx)} }

type olderTxn struct {
	clientv3.Txn
	denied bool
}

func (o *olderTxn) If(all ...clientv3.Cmp) clientv3.Txn {
	o.Txn = o.Txn.If(all...)
	return o
}

func (o *olderTxn) Then(all ...clientv3.Op) clientv3.Txn {
	o.denied = slices.ContainsFunc(all, func(op clientv3.Op) bool { return string(op.KeyBytes()) == state.Timeline("db-1") })
	o.Txn = o.Txn.Then(all...)
	return o
}

func (o *olderTxn) Commit() (*clientv3.TxnResponse, error) {
	if o.denied {
		return nil, rpctypes.ErrPermissionDenied
	}
	return o.Txn.Commit()
}

// TestControlPlanesOfTwoReleases keep nobody from being promoted.
func TestControlPlanesOfTwoReleases(t *testing.T) {
	t.Parallel()
	s := newStage(t, onlyM2)
	s.store.Client.KV = older{s.store.Client.KV}
	dir := dataDir(t, 1)
	s.must(s.pass(func(cfg *Config) { cfg.DataDir = dir }))
	passed, err := state.Get[fence.Passed](t.Context(), s.store, state.Passed("db-1"))
	if err != nil || passed.Value.Member != "m2" {
		t.Errorf("%+v, %v", passed.Value, err)
	}
}

// TestPostgreSQLGoesPastABarredTimeline, and follows none.
func TestPostgreSQLGoesPastABarredTimeline(t *testing.T) {
	t.Parallel()
	s := sourcetest.New(t)
	s.Backup("one")
	b := s.Keep("b")
	s.Archive()
	s.Promote("one", b.End, func(data string) {
		s.Must(s.User.Do(func() error { return bar(data, 4) }))
	})
	if n := sourcetest.Ask[int](s, "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int"); n != 4 {
		t.Errorf("it is on timeline %d", n)
	}
	text, err := s.User.ReadFile(filepath.Join(s.Data, "pg_wal", HistoryName(4)))
	s.Must(err)
	if string(text[:2]) != "1\t" {
		t.Errorf("its history is %q", text)
	}
}

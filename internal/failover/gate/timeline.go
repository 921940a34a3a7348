package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/engine/postgres"
	"howdah/internal/failover/fence"
	"howdah/internal/state"
	"howdah/internal/system/plainfile"
)

// A promotion begins the timeline after the newest one that PostgreSQL finds a history of in pg_wal.
// A standby may not have heard of the promotion before: the member that was promoted was lost at
// once, and archived first. Two servers would then archive other WAL by the same names. So each gate
// takes a number in etcd, and bars those that were taken before: it puts histories in pg_wal that
// name no other timeline. PostgreSQL goes past them, follows none of them, and hands them to its own
// standbys, which ask for every history up to the newest.

// Barred is what such a history says, as a comment. If nothing is promoted after all, it is in the
// way of whoever follows a primary on that timeline, and has to be removed.
const Barred = "# taken by a promotion that this server had not heard of\n"

// taken is the file in the data directory that says which number a gate has taken for it, or was about
// to. If nothing was promoted by it, the next gate there takes the same one again.
const taken = "howdah_timeline"

// mostBarred is how many numbers in a row are barred at most. There are more only if somebody else wrote
// the record, or a history.
const mostBarred = 64

// claims is what etcd has of timelines.
type claims struct {
	known    bool // the record may be read and written: not so by a control plane of an older release
	revision int64
	fence.Timeline
}

// claimed reads the record.
func (g *gate) claimed(ctx context.Context) (c claims, err error) {
	if g.DataDir == "" {
		return c, nil
	}
	answer, err := g.Client.Get(ctx, state.Timeline(g.Database))
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("ask etcd for the timelines of %s: %w", g.Database, err)
	}
	c.known = true
	for _, kv := range answer.Kvs {
		c.revision = kv.ModRevision
		// What cannot be read stands in nobody's way, and is written anew.
		if err := json.Unmarshal(kv.Value, &c.Timeline); err != nil {
			g.Log.Warn("the record of timelines cannot be read", "error", err)
			c.Timeline = fence.Timeline{}
		}
	}
	return c, nil
}

// claim is the number that a promotion takes, with what records it.
type claim struct {
	number    int // 0: none is taken
	note      string
	condition []clientv3.Cmp
	change    []clientv3.Op
}

// claim chooses a number for the promotion.
func (g *gate) claim(f facts) (c claim, err error) {
	if !f.claims.known {
		return c, nil
	}
	own, err := readLineage(g.DataDir)
	if err != nil {
		return c, err
	}
	last := f.claims.Timeline
	mine := last.Member == g.Name && own.noted(last)
	switch {
	case last.Number > own.newest+mostBarred:
		g.Log.Warn("the record of timelines is not believed", "record", last.Number, "newest", own.newest)
		c.number = own.after(own.newest)
	case mine && last.Number > own.newest && !own.known[last.Number]:
		c.number = last.Number
	default:
		c.number = own.after(max(own.newest, last.Number))
	}
	next := fence.Timeline{Database: g.Database, Number: c.number, Member: g.Name, LeaderRevision: f.leaderRevision}
	text, err := encode(next)
	if err != nil {
		return c, err
	}
	if c.note = mark(next); mine {
		c.note += mark(last) // until it is replaced
	}
	key := state.Timeline(g.Database)
	c.condition = []clientv3.Cmp{unchanged(key, f.claims.revision)}
	c.change = []clientv3.Op{clientv3.OpPut(key, text)}
	return c, nil
}

// note notes in the data directory which number is about to be claimed. So a gate that is killed once
// it has claimed it leaves no gap: there is a record of what is noted only once the claim is made.
func (g *gate) note(c claim) {
	if c.number == 0 {
		return
	}
	// Without it the next gate takes another number.
	if err := os.WriteFile(filepath.Join(g.DataDir, taken), []byte(c.note), 0o600); err != nil {
		g.Log.Warn("note the timeline of a promotion", "error", err)
	}
}

// bar has the promotion take the number that was claimed.
func (g *gate) bar(c claim) error {
	if c.number == 0 {
		return nil
	}
	return bar(g.DataDir, c.number)
}

// mark names a claim in the data directory.
func mark(t fence.Timeline) string { return fmt.Sprintf("%d %d\n", t.Number, t.LeaderRevision) }

// lineage is what a data directory says of timelines.
type lineage struct {
	now    int // that of the newest checkpoint: the server is on it, or on a later one
	newest int // that it knows of: not one that lies further up than can be barred
	known  map[int]bool
	taken  string
}

// noted reports whether a gate has noted a claim here.
func (l lineage) noted(t fence.Timeline) bool { return strings.Contains("\n"+l.taken, "\n"+mark(t)) }

// after is the first number after another one that has no history.
func (l lineage) after(n int) int {
	for n++; l.known[n]; n++ {
	}
	return n
}

func readLineage(dataDir string) (l lineage, err error) {
	control, err := postgres.ReadControl(dataDir)
	if err != nil {
		return l, err
	}
	l.now, l.newest, l.known = control.Timeline, control.Timeline, map[int]bool{}
	files, err := filepath.Glob(filepath.Join(dataDir, "pg_wal", "????????.history"))
	if err != nil {
		return l, err
	}
	for _, path := range files {
		if n, ok := ParseHistoryName(filepath.Base(path)); ok {
			l.known[n] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(l.known)) {
		if n > l.newest && n <= l.newest+mostBarred {
			l.newest = n
		}
	}
	text, err := plainfile.Read(filepath.Join(dataDir, taken))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l, fmt.Errorf("read the timeline of a promotion before: %w", err)
	}
	l.taken = string(text)
	return l, nil
}

// bar puts a history in the place of each one that is missing before a number.
func bar(dataDir string, number int) error {
	l, err := readLineage(dataDir)
	if err != nil {
		return err
	}
	wal, barredAny := filepath.Join(dataDir, "pg_wal"), false
	for n := l.now + 1; n < number; n++ {
		if l.known[n] {
			continue
		}
		if err := plainfile.Replace(filepath.Join(wal, HistoryName(n)), []byte(Barred), 0o600); err != nil {
			return fmt.Errorf("bar timeline %d: %w", n, err)
		}
		barredAny = true
	}
	if !barredAny {
		return nil
	}
	// A standby asks for them after a loss of power, too.
	dir, err := os.Open(wal)
	if err != nil {
		return fmt.Errorf("bar timelines: %w", err)
	}
	defer dir.Close()
	return dir.Sync()
}

// HistoryName is the name of the file with the history of a timeline.
func HistoryName(timeline int) string { return fmt.Sprintf("%08X.history", timeline) }

// ParseHistoryName returns whose history a file has.
func ParseHistoryName(name string) (timeline int, ok bool) {
	digits, ok := strings.CutSuffix(name, ".history")
	n, err := strconv.ParseUint(digits, 16, 31)
	return int(n), ok && err == nil && name == HistoryName(int(n))
}

// Package mark finds out which moment of a database can be restored: the newest one that a restore
// certainly reaches.
//
// The host of a primary commits a heartbeat now and then, and notes a time before the commit and a
// position behind it. That is a mark. It counts once a synchronous standby has the position, so that
// a failover does not take it back, and once the repository has every file of WAL from the newest
// backup's beginning up to that position. Then it is kept in the repository, where a later primary
// finds it, and after that it is reported. So what is reported is never more than what can be
// restored, and never goes back while nothing that was acknowledged is lost, and nothing that was
// archived.
//
// Which files the repository has is known from those that were written through the host's gateway,
// and from a listing at the beginning: files are not deduced from numbers.
package mark

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/pace"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/repository/store"
)

// Pauses of a Watch.
const (
	// every is how often it looks.
	every = time.Second
	// beatEvery is how often a primary commits a heartbeat while others write, and idleEvery how
	// often while nobody does.
	beatEvery = 10 * time.Second
	idleEvery = 4 * time.Minute
	// endAfter is how long a mark waits for the file of WAL that it is in to get full, before that is
	// ended with a new mark at its end. It is shorter than archive_timeout, which ends files just before
	// a mark as well.
	endAfter = 20 * time.Second
	// freshFor is longer than a primary that was replaced can write.
	freshFor = time.Minute
	// backlogEvery is how often it is looked at what waits to be archived.
	backlogEvery = 5 * time.Second
	// listAgain is how often all files are listed anew: somebody may have taken some away.
	listAgain = time.Hour

	sqlTimeout   = 3 * time.Second
	storeTimeout = 10 * time.Second
	listTimeout  = 10 * time.Minute
)

// mostPending is how many marks wait to be published at most. When there are more, every other one
// is dropped.
const mostPending = 64

// Backup is what counts of a backup in a repository.
type Backup struct {
	Timeline    int
	Start, Stop lsn.LSN
}

// Around is what a Watch works with. All are required, and may be called by its goroutine at any
// time.
type Around struct {
	Database string
	Log      *slog.Logger
	// Primary returns whether the member serves as a primary now that is archived, and by which
	// name of a repository.
	Primary func() (repository string, ok bool)
	// Connect connects as rdsadmin to the member's server, to the platform's database.
	Connect func(context.Context) (*pgx.Conn, error)
	// Objects opens the repository, and Backups returns its backups of the database, the newest
	// last. List calls f for the names of all files of WAL that it has of the database.
	Objects func(repository string) (store.Objects, error)
	Backups func(ctx context.Context, repository string) ([]Backup, error)
	List    func(ctx context.Context, repository string, f func(name string)) error
	// History reads the file of a timeline's history.
	History func(timeline int) (string, error)
	// Backlog reads what waits in the member's directories.
	Backlog func() (Backlog, error)
	// Forget takes names out of the lists of files that were given up, and of those that are
	// another server's.
	Forget func(names []string) error
	// Why says what stands in the way of the archive, or "".
	Why func() string
}

// Backlog is what the archiver has to do.
type Backlog struct {
	// Ready lists the files that wait, in order.
	Ready []string
	// Broken lists the files that were given up, the oldest first.
	Broken []string
	// Foreign lists the files of which the repository has another server's.
	Foreign []string
}

// Watch makes the marks of one member, while it is a primary.
type Watch struct {
	Around

	mu       sync.Mutex
	stock    *Stock           // guarded by mu; nil: not the primary
	into     string           // guarded by mu: the repository that has the stock
	archived *member.Archived // guarded by mu; nil: nothing is known
	fresh    bool             // guarded by mu: a backup was made
	// last is the newest mark of the time as primary that is over, and left when that ended.
	last *member.Archived // guarded by mu; nil: none
	left time.Time        // guarded by mu

	// All below belongs to the goroutine.
	conn    *pgx.Conn
	epoch   epoch
	backlog backlog
}

// epoch is what is known of a time as primary, on one timeline, of one repository.
type epoch struct {
	repository string
	began      time.Time
	timeline   int // 0: nothing was committed yet
	history    History
	pending    []member.Mark // the oldest first
	beat       time.Time     // the last heartbeat was tried at
	written    time.Time     // and committed at
	next       string        // see postgres.Beat
	learn      pace.Backoff
	listed     time.Time // zero: the stock is not complete
	relist     bool      // something is missing in the stock
	based      time.Time // the newest backup was looked for at
	base       *Backup
	book       book
	clock      clock
}

// Wrote is told of each file of WAL that came into a repository.
func (w *Watch) Wrote(repository, name string) {
	file, ok := ParseSegment(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ok && w.stock != nil && w.into == repository {
		w.stock.Add(file)
	}
}

// Backed is told that a backup was made.
func (w *Watch) Backed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fresh = true
}

// Archived returns what is known; nil: nothing, as for whoever is no primary. It is the same one
// until it says something else, and must not be altered.
func (w *Watch) Archived() *member.Archived {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.archived
}

// lastFor is how long the newest mark is told after the member was a primary: so long the next primary
// may take to find it in the repository.
const lastFor = time.Minute

// Last returns the newest mark of a time as primary that has just ended; nil: there is none. What it
// promises is in the repository, and holds until the next primary tells more. It is the same one each
// time.
func (w *Watch) Last(now time.Time) *member.Archived {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.left).Abs() > lastFor {
		return nil
	}
	return w.last
}

// Run works until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	defer w.leave()
	for {
		if repository, ok := w.Primary(); ok {
			w.look(ctx, repository)
		} else {
			w.leave()
		}
		if !pace.Sleep(ctx, every) {
			return
		}
	}
}

// leave forgets all that was known of a time as primary.
func (w *Watch) leave() {
	w.hangUp()
	w.epoch, w.backlog = epoch{}, backlog{}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.archived != nil {
		w.last, w.left = &member.Archived{Restorable: w.archived.Restorable}, time.Now()
	}
	w.stock, w.archived = nil, nil
}

func (w *Watch) hangUp() {
	if w.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	w.conn.Close(ctx)
	w.conn = nil
}

func (w *Watch) look(ctx context.Context, repository string) {
	if w.epoch.repository != repository {
		w.begin(epoch{repository: repository, clock: w.epoch.clock})
	}
	now := time.Now()
	if back := w.epoch.clock.look(now); back > 0 {
		w.Log.Warn("the clock was set back: no moment is promised that it shows for the second time", "by", back.String())
	}
	if err := w.commit(ctx, now); err != nil && ctx.Err() == nil {
		w.hangUp()
		w.Log.Debug("commit a heartbeat", "error", err)
	}
	w.lookBack(now)
	if w.epoch.timeline == 0 {
		return
	}
	if err := w.learnAll(ctx, now); err != nil {
		w.epoch.learn.Attempt(now)
		if ctx.Err() == nil {
			w.Log.Info("look what the repository has", "repository", repository, "error", err)
		}
	}
	if err := w.publish(ctx); err != nil && ctx.Err() == nil {
		w.Log.Info("publish what can be restored", "repository", repository, "error", err)
	}
}

// begin starts to note what comes into a repository, before it is listed.
func (w *Watch) begin(e epoch) {
	w.epoch = e
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stock, w.into, w.archived = &Stock{}, e.repository, nil
}

// commit makes a mark if it is time to: soon after others have written, and seldom if nobody has.
func (w *Watch) commit(ctx context.Context, now time.Time) error {
	if now.Sub(w.epoch.beat) < beatEvery {
		return nil
	}
	w.epoch.beat = now
	ctx, cancel := context.WithTimeout(ctx, sqlTimeout)
	defer cancel()
	if w.conn == nil {
		conn, err := w.Connect(ctx)
		if err != nil {
			return err
		}
		w.conn = conn
		archives, err := postgres.Archives(ctx, conn)
		if err != nil {
			return err
		}
		w.backlog.off(archives, now)
	}
	if w.epoch.rests(now) {
		next, err := postgres.NextWriter(ctx, w.conn)
		if err != nil || next == w.epoch.next {
			return err
		}
	}
	b, err := postgres.Commit(ctx, w.conn)
	if err != nil {
		return err
	}
	if b.Timeline != w.epoch.timeline {
		text := ""
		if b.Timeline > 1 {
			if text, err = w.History(b.Timeline); err != nil {
				return err
			}
		}
		history, err := ParseHistory(b.Timeline, text)
		if err != nil {
			return err
		}
		w.begin(epoch{repository: w.epoch.repository, began: now, beat: now, timeline: b.Timeline, history: history, clock: w.epoch.clock})
	}
	w.epoch.written, w.epoch.next = now, b.Next
	m := member.Mark{At: b.At, Timeline: b.Timeline, LSN: b.End}
	w.epoch.clock.made(m, w.epoch.base)
	w.epoch.pending = append(thin(w.epoch.pending), m)
	if w.epoch.ends(now) {
		return postgres.EndFile(ctx, w.conn)
	}
	return nil
}

// ends reports whether the file of WAL is to be ended that has the newest mark: another one waits for
// that, or it is the first one after a promotion. Until then nothing is promised but what the primary
// before has archived.
func (e *epoch) ends(now time.Time) bool {
	newest := e.pending[len(e.pending)-1]
	first := slices.IndexFunc(e.pending, func(m member.Mark) bool {
		return m.Timeline == newest.Timeline && segmentBefore(m.LSN) == segmentBefore(newest.LSN)
	})
	promoted := e.timeline > 1 && e.began.Equal(now)
	return promoted || newest.At.Sub(e.pending[first].At) >= endAfter
}

// segmentBefore is the number of the file of WAL that ends at a position, or has what is before it.
func segmentBefore(at lsn.LSN) uint64 { return uint64(max(at, 1)-1) / SegmentSize }

// rests reports whether a heartbeat is due only if somebody else has written. It is not soon after a
// promotion: an old primary may still write, and a restore takes a moment after such a write for one
// on this timeline by the commits that this one has.
func (e *epoch) rests(now time.Time) bool {
	promoted := e.timeline > 1 && now.Sub(e.began) < freshFor
	return !promoted && now.Sub(e.written) < idleEvery
}

// thin makes room for one more.
func thin(pending []member.Mark) []member.Mark {
	if len(pending) < mostPending {
		return pending
	}
	kept := pending[:0]
	for n, m := range pending {
		if n%2 == 1 {
			kept = append(kept, m)
		}
	}
	return kept
}

// learnAll finds out what the repository has: which files, which marks were made by those who were
// primaries before, and where the newest backup begins.
func (w *Watch) learnAll(ctx context.Context, now time.Time) error {
	e := &w.epoch
	w.mu.Lock()
	fresh, stock := w.fresh, w.stock
	w.fresh = false
	w.mu.Unlock()
	if fresh {
		e.based = time.Time{}
	}
	if !e.learn.Ready(now) {
		return nil
	}
	if e.listed.IsZero() {
		objects, err := w.Objects(e.repository)
		if err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		if e.book, err = readBook(limited, objects, w.Database); err != nil {
			return err
		}
		w.tell(func(a *member.Archived) { a.Restorable = e.book.newest(e.history) })
	}
	if e.relist || now.Sub(e.listed) >= listAgain {
		if !e.listed.IsZero() {
			stock = &Stock{}
			w.mu.Lock()
			w.stock = stock
			w.mu.Unlock()
			e.listed = time.Time{}
		}
		limited, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		err := w.List(limited, e.repository, func(name string) {
			if file, ok := ParseSegment(name); ok {
				stock.Add(file)
			}
		})
		if err != nil {
			return err
		}
		e.listed, e.relist = now, false
	}
	// Whoever makes a backup tells of it, but an agent may have died before.
	again := listAgain
	if a := w.Archived(); e.base == nil || a != nil && a.Broken != "" {
		again = idleEvery
	}
	if now.Sub(e.based) >= again {
		limited, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		all, err := w.Backups(limited, e.repository)
		if err != nil {
			return err
		}
		e.base, e.based = e.history.newest(all), now
	}
	e.learn = pace.Backoff{}
	return nil
}

// publish keeps the newest mark that can be restored, and tells of it.
func (w *Watch) publish(ctx context.Context) error {
	e := &w.epoch
	at := w.newestWhole()
	if at < 0 || w.conn == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, sqlTimeout)
	defer cancel()
	m := e.pending[at]
	confirmed, err := postgres.Confirmed(limited, w.conn, m.LSN)
	if err == nil && confirmed {
		confirmed, err = w.own(limited, m)
	}
	if err != nil {
		w.hangUp()
		return err
	}
	if !confirmed {
		return nil
	}
	objects, err := w.Objects(e.repository)
	if err != nil {
		return err
	}
	keeping, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if e.book, err = e.book.write(keeping, objects, w.Database, m); err != nil {
		return err
	}
	e.pending = e.pending[at+1:]
	w.tell(func(a *member.Archived) { a.Restorable = m })
	return nil
}

// own reports whether what the repository has up to a mark is this server's. Another server may have
// archived files by the same names, if it was promoted to the same timeline. The archiver finds that
// out when it is done with its own.
func (w *Watch) own(ctx context.Context, m member.Mark) (bool, error) {
	name, err := postgres.LastArchived(ctx, w.conn)
	if err != nil {
		return false, err
	}
	last, ok := ParseSegment(name)
	end := Segment{m.Timeline, segmentBefore(m.LSN)}
	if !ok || last.Timeline != end.Timeline || last.Number < end.Number {
		return false, nil
	}
	b, err := w.Backlog()
	if err != nil {
		return false, fmt.Errorf("look what another server has archived: %w", err)
	}
	var foreign []Segment
	for _, name := range b.Foreign {
		if file, ok := ParseSegment(name); ok {
			foreign = append(foreign, file)
		} else if !w.harmless(name) { // the way to this timeline is another server's
			return false, nil
		}
	}
	return !w.epoch.history.needs(foreign, w.epoch.from(), Point{m.Timeline, m.LSN}), nil
}

// newestWhole returns which of the pending marks is the newest that the repository has all WAL for,
// or -1.
func (w *Watch) newestWhole() int {
	e := &w.epoch
	if e.base == nil || e.listed.IsZero() {
		return -1
	}
	w.mu.Lock()
	stock := w.stock
	w.mu.Unlock()
	for n := len(e.pending) - 1; n >= 0; n-- {
		m := e.pending[n]
		if m.LSN < e.base.Stop {
			return -1
		}
		if e.shownBefore(m) {
			continue
		}
		if _, missing := stock.Missing(e.history, e.from(), Point{m.Timeline, m.LSN}); !missing {
			return n
		}
	}
	return -1
}

// from is where a restore begins that reaches what is newest.
func (e *epoch) from() Point { return Point{e.base.Timeline, e.base.Start} }

// tell changes what is known, in a copy: others may have the one before.
func (w *Watch) tell(change func(*member.Archived)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var next member.Archived
	if w.archived != nil {
		next = *w.archived
	}
	change(&next)
	if w.archived == nil || *w.archived != next {
		w.archived = &next
	}
}

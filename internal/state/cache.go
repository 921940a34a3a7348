package state

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

const (
	// A watch is asked every pulseEvery whether it is still there, and may owe the answer for
	// deadAfter. gRPC itself allows no keepalive that finds out before 12 s. That is too long for a
	// host that has to cut a primary off.
	pulseEvery = time.Second
	deadAfter  = 2500 * time.Millisecond
	// loadWithin is how long the first attempt to read everything may take. Each further attempt
	// may take twice as long, up to loadMost.
	loadWithin = 2 * time.Second
	loadMost   = 32 * time.Second
)

// Cache mirrors in memory everything below some prefixes, by etcd's watch. A read costs no round
// trip. After WaitRevision or Fresh, reads see what was written before.
type Cache struct {
	client   *clientv3.Client
	prefixes []string
	log      *slog.Logger

	mu       sync.RWMutex
	buckets  map[string]*bucket // guarded by mu; by the first two parts of the key
	changes  int64              // guarded by mu: counts them
	journal  journal            // guarded by mu
	revision int64              // guarded by mu: all changes up to here are in values
	moved    chan struct{}      // guarded by mu: closed and replaced when revision grows
	stream   string             // guarded by mu: names the connection of the watches
	heard    time.Time          // guarded by mu: see Heard

	listeners []func(keys []string)
}

// NewCache returns a cache of these prefixes. Run fills it.
func NewCache(client *clientv3.Client, log *slog.Logger, prefixes ...string) *Cache {
	return &Cache{
		client: client, prefixes: prefixes, log: log,
		buckets: map[string]*bucket{}, moved: make(chan struct{}),
	}
}

// OnChange registers a listener. It is called in order, and from one goroutine, with the keys of
// each batch of changes, once these can be read. Call OnChange before Run. A listener must not
// block.
func (c *Cache) OnChange(listener func(keys []string)) {
	c.listeners = append(c.listeners, listener)
}

// Run mirrors until ctx ends. After a watch is lost, compacted or silent, Run reads everything
// again. A watch is silent if it is at a member of etcd whose host is gone.
func (c *Cache) Run(ctx context.Context) error {
	for patience := loadWithin; ; {
		revision, err := c.load(ctx, patience)
		patience = min(2*patience, loadMost)
		if err == nil {
			patience = loadWithin
			stream := streamOf(c.client)
			c.onStream(stream.name())
			err = c.follow(ctx, revision)
			c.onStream("")
			stream.leave()
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
		c.log.Warn("state watch interrupted, reloading", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// onStream records the name of the watches' connection, or "" if there are none.
func (c *Cache) onStream(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stream = name
}

// watching returns the context for the watches of one attempt: see stream.
func (c *Cache) watching(ctx context.Context) context.Context {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(ctx), "howdah-watch", c.stream)
}

// batch is what one watch reported at once.
type batch struct {
	watch  int
	answer clientv3.WatchResponse
}

// follow mirrors what happens after this revision.
func (c *Cache) follow(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan batch)
	for i, prefix := range c.prefixes {
		go c.watch(ctx, i, prefix, revision, batches)
	}
	// Each watch tells how far it is. All together they are as far as the last of them.
	reached := make([]int64, len(c.prefixes))
	for i := range reached {
		reached[i] = revision
	}
	pulse := time.NewTicker(pulseEvery)
	defer pulse.Stop()
	heard, ticked := time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case b := <-batches:
			if b.answer.Canceled {
				return fmt.Errorf("watch %s: %w", c.prefixes[b.watch], b.answer.Err())
			}
			heard = time.Now()
			reached[b.watch] = max(reached[b.watch], upTo(b.answer))
			c.apply(b.answer.Events, slices.Min(reached), heard)
		case <-pulse.C:
			// Time in which this process itself stood still does not count.
			if stall := time.Since(ticked) - pulseEvery; stall > pulseEvery/2 {
				heard = heard.Add(stall)
			}
			ticked = time.Now()
			if silence := time.Since(heard); silence > deadAfter {
				return fmt.Errorf("watch: nothing was heard for %s", silence.Round(time.Millisecond))
			}
			if time.Since(heard) > pulseEvery/2 {
				go c.ask(ctx)
			}
		}
	}
}

// Heard returns when etcd said last how far it is: what can be read now was so then, or has become so
// since. While etcd answers, that is about a second ago at most. It is zero before anything was read.
func (c *Cache) Heard() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.heard
}

// upTo returns the revision up to which a watch has told everything with this answer. A watch that
// catches up gets a thousand revisions at a time from etcd, and the header of each answer
// nevertheless has the newest revision. An answer never has half a revision. An answer without
// events comes from a watch that has told everything that its member of etcd knows. It has that
// member's revision, which is too low at most if that member is behind.
func upTo(answer clientv3.WatchResponse) int64 {
	if n := len(answer.Events); n > 0 {
		return answer.Events[n-1].Kv.ModRevision
	}
	return answer.Header.Revision
}

// ask makes the watches tell how far they are. It may block while nobody answers.
func (c *Cache) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, deadAfter)
	defer cancel()
	if err := c.progress(ctx); err != nil && ctx.Err() == nil {
		c.log.Debug("ask for the progress of a watch", "error", err)
	}
}

// progress asks on the stream of the watches. If there is no stream it asks nothing, as the client
// would open one that nobody closes.
func (c *Cache) progress(ctx context.Context) error {
	c.mu.RLock()
	watches := c.stream != ""
	c.mu.RUnlock()
	if !watches || ctx.Err() != nil {
		return ctx.Err()
	}
	return c.client.RequestProgress(c.watching(ctx))
}

// progressSoon asks as progress does. It waits for a dead stream only until that stream is left for
// another one.
func (c *Cache) progressSoon(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, deadAfter)
	defer cancel()
	err := c.progress(soon)
	if err != nil && ctx.Err() == nil && soon.Err() != nil {
		return nil
	}
	return err
}

// watch passes on what one watch reports, until ctx ends.
func (c *Cache) watch(ctx context.Context, i int, prefix string, revision int64, batches chan<- batch) {
	for answer := range c.client.Watch(c.watching(ctx), prefix, clientv3.WithPrefix(), clientv3.WithRev(revision+1), clientv3.WithProgressNotify()) {
		select {
		case batches <- batch{i, answer}:
		case <-ctx.Done():
		}
	}
	// A channel that is closed without an answer ends follow, too.
	select {
	case batches <- batch{i, clientv3.WatchResponse{Canceled: true}}:
	case <-ctx.Done():
	}
}

// load replaces the mirror by one consistent snapshot.
func (c *Cache) load(ctx context.Context, patience time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ops := make([]clientv3.Op, len(c.prefixes))
	for i, prefix := range c.prefixes {
		ops[i] = clientv3.OpGet(prefix, clientv3.WithPrefix())
	}
	asked := time.Now()
	answer, err := c.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return 0, fmt.Errorf("load state: %w", err)
	}
	buckets := map[string]*bucket{}
	for _, response := range answer.Responses {
		for _, kv := range response.GetResponseRange().Kvs {
			key := string(kv.Key)
			bucketFor(buckets, key).put(key, &entry{raw: kv.Value, revision: kv.ModRevision})
		}
	}
	c.mu.Lock()
	changed := differences(c.buckets, buckets)
	c.changes++
	c.journal.forget(c.changes)
	for _, b := range buckets {
		b.changed = c.changes
	}
	for name := range c.buckets {
		if buckets[name] == nil {
			buckets[name] = &bucket{changed: c.changes}
		}
	}
	c.buckets = buckets
	c.heard = asked
	c.advance(answer.Header.Revision)
	c.mu.Unlock()
	c.tell(changed)
	return answer.Header.Revision, nil
}

// bucketFor returns the bucket of a key, and makes it if need be.
func bucketFor(buckets map[string]*bucket, key string) *bucket {
	name := bucketOf(key)
	if buckets[name] == nil {
		buckets[name] = &bucket{}
	}
	return buckets[name]
}

func differences(before, after map[string]*bucket) []string {
	var keys []string
	for name, b := range after {
		for _, i := range b.items {
			if old := before[name].get(i.key); old == nil || old.revision != i.revision {
				keys = append(keys, i.key)
			}
		}
	}
	for name, b := range before {
		for _, i := range b.items {
			if after[name].get(i.key) == nil {
				keys = append(keys, i.key)
			}
		}
	}
	return keys
}

func (c *Cache) apply(events []*clientv3.Event, revision int64, heard time.Time) {
	keys := make([]string, 0, len(events))
	c.mu.Lock()
	c.heard = heard
	c.changes++
	for _, e := range events {
		key := string(e.Kv.Key)
		keys = append(keys, key)
		c.journal.add(c.changes, key)
		b := bucketFor(c.buckets, key)
		b.changed = c.changes
		if e.Type == clientv3.EventTypeDelete {
			b.remove(key)
		} else {
			b.put(key, &entry{raw: e.Kv.Value, revision: e.Kv.ModRevision})
		}
	}
	c.advance(revision)
	c.mu.Unlock()
	c.tell(keys)
}

// advance records that the mirror is at a revision. The caller holds mu.
func (c *Cache) advance(revision int64) {
	if revision <= c.revision {
		return
	}
	c.revision = revision
	close(c.moved)
	c.moved = make(chan struct{})
}

func (c *Cache) tell(keys []string) {
	if len(keys) == 0 {
		return
	}
	for _, listener := range c.listeners {
		listener(keys)
	}
}

// These are the pauses before a mirror that is behind asks again how far it is. They grow, because
// every answer is work for a member that is busy.
const (
	leastPause   = 10 * time.Millisecond
	longestPause = 200 * time.Millisecond
)

// WaitRevision blocks until everything up to this revision can be read.
func (c *Cache) WaitRevision(ctx context.Context, revision int64) error {
	for pause := leastPause; ; pause = min(2*pause, longestPause) {
		c.mu.RLock()
		reached, moved := c.revision >= revision, c.moved
		c.mu.RUnlock()
		if reached {
			return nil
		}
		// Only a write below our prefixes, or this request, moves a watch on.
		if err := c.progressSoon(ctx); err != nil {
			return fmt.Errorf("wait for revision %d: %w", revision, err)
		}
		select {
		case <-moved:
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("wait for revision %d: %w", revision, ctx.Err())
		}
	}
}

// Loaded blocks until the first snapshot can be read.
func (c *Cache) Loaded(ctx context.Context) error {
	return c.WaitRevision(ctx, 1)
}

// Load reads one value from the mirror. All readers share values: what a value points to must not
// be changed.
func Load[T any](c *Cache, key string) (Record[T], error) {
	r, err := View[T](c, key)
	return Copy(r), err
}

// View is Load without a copy: the value itself must not be changed either.
func View[T any](c *Cache, key string) (Record[*T], error) {
	c.mu.RLock()
	e := c.buckets[bucketOf(key)].get(key)
	c.mu.RUnlock()
	if e == nil {
		return Record[*T]{}, fmt.Errorf("read %s: %w", key, ErrNotFound)
	}
	return decodeEntry[T](key, e)
}

// Copy returns a copy of a shared record. The copy may be altered, except for what it points to.
func Copy[T any](shared Record[*T]) Record[T] {
	r := Record[T]{Key: shared.Key, Revision: shared.Revision}
	if shared.Value != nil {
		r.Value = *shared.Value
	}
	return r
}

// Copies copies all records as Copy does.
func Copies[T any](shared []Record[*T]) []Record[T] {
	records := make([]Record[T], len(shared))
	for n, r := range shared {
		records[n] = Copy(r)
	}
	return records
}

func decodeEntry[T any](key string, e *entry) (Record[*T], error) {
	if known := e.decoded.Load(); known != nil {
		if value, ok := (*known).(*T); ok {
			return Record[*T]{Key: key, Value: value, Revision: e.revision}, nil
		}
	}
	r, err := decode[T](key, e.raw, e.revision)
	if err == nil {
		var value any = &r.Value
		e.decoded.Store(&value)
	}
	return Record[*T]{Key: key, Value: &r.Value, Revision: e.revision}, err
}

// LoadAll reads all values below a prefix from the mirror, ordered by key. It leaves out and logs a
// value that does not decode: one bad record must not hide the others. Values are shared, as with
// Load.
func LoadAll[T any](c *Cache, prefix string) []Record[T] {
	return Copies(ViewAll[T](c, prefix))
}

// ViewAll is LoadAll without copies, for thousands of records. The values themselves must not be
// changed either.
func ViewAll[T any](c *Cache, prefix string) []Record[*T] { return view[T](c, c.below(prefix)) }

// ViewNewer is ViewAll for what was written after a revision.
func ViewNewer[T any](c *Cache, prefix string, revision int64) []Record[*T] {
	return view[T](c, slices.DeleteFunc(c.below(prefix), func(i item) bool { return i.revision <= revision }))
}

func view[T any](c *Cache, items []item) []Record[*T] {
	records := make([]Record[*T], 0, len(items))
	for _, i := range items {
		r, err := decodeEntry[T](i.key, i.entry)
		if err != nil {
			c.log.Error("state record is corrupt", "key", i.key, "error", err)
			continue
		}
		records = append(records, r)
	}
	return records
}

func (c *Cache) below(prefix string) []item {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.buckets[bucketOf(prefix)].below(prefix)
}

// Changes returns a number that grows whenever a key changes that shares its first two parts with
// one of the prefixes. Until then the caller may keep what it derived from all of them.
func (c *Cache) Changes(prefixes ...string) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	newest := int64(0)
	for _, prefix := range prefixes {
		if b := c.buckets[bucketOf(prefix)]; b != nil {
			newest = max(newest, b.changed)
		}
	}
	return newest
}

// Raw reads one value as it is stored. It is for keys that belong to others (Patroni's).
func (c *Cache) Raw(key string) (value []byte, revision int64, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.buckets[bucketOf(key)].get(key)
	if e == nil {
		return nil, 0, false
	}
	return e.raw, e.revision, true
}

// Keys lists the keys below a prefix, in order. The prefix has at least two parts.
func (c *Cache) Keys(prefix string) []string {
	items := c.below(prefix)
	keys := make([]string, len(items))
	for n, i := range items {
		keys[n] = i.key
	}
	return keys
}

// Names lists what follows a root in the keys below it, in order.
func (c *Cache) Names(root string) []string {
	names := c.Keys(root)
	for i, key := range names {
		names[i] = Tail(key, root)
	}
	return names
}

// Children lists the parts that follow a prefix of one part, in order, such as the databases below
// Patroni's namespace.
func (c *Cache) Children(prefix string) []string {
	var names []string
	c.mu.RLock()
	defer c.mu.RUnlock()
	for name, b := range c.buckets {
		if rest, ok := strings.CutPrefix(name, prefix); ok && len(b.items) > 0 {
			names = append(names, strings.TrimSuffix(rest, "/"))
		}
	}
	slices.Sort(names)
	return names
}

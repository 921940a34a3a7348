package state

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Cache mirrors everything below some prefixes in memory, by etcd's watch. Reads
// cost no round trip; WaitRevision and Fresh make them see what was written.
type Cache struct {
	client   *clientv3.Client
	prefixes []string
	log      *slog.Logger

	mu       sync.RWMutex
	buckets  map[string]bucket // guarded by mu; by the first two parts of the key
	revision int64             // guarded by mu: all changes up to here are in values
	moved    chan struct{}     // guarded by mu: closed and replaced when revision grows

	listeners []func(keys []string)
}

type bucket map[string]*entry

// entry is one value. It is decoded once, for the type that is asked for first:
// a key has one type.
type entry struct {
	raw      []byte
	revision int64
	decoded  atomic.Pointer[any]
}

// bucketOf is the part of a key or prefix up to its third slash.
func bucketOf(key string) string {
	n := 0
	for i := range len(key) {
		if key[i] == '/' {
			n++
			if n == 3 {
				return key[:i+1]
			}
		}
	}
	return key
}

// NewCache makes a cache of the given prefixes; Run fills it.
func NewCache(client *clientv3.Client, log *slog.Logger, prefixes ...string) *Cache {
	return &Cache{
		client: client, prefixes: prefixes, log: log,
		buckets: map[string]bucket{}, moved: make(chan struct{}),
	}
}

// OnChange has listener called, in order and from one goroutine, with the keys
// of each batch of changes, after they can be read. Call it before Run; a
// listener must not block.
func (c *Cache) OnChange(listener func(keys []string)) {
	c.listeners = append(c.listeners, listener)
}

// Run mirrors until ctx ends. A lost or compacted watch is followed by a reload.
func (c *Cache) Run(ctx context.Context) error {
	for {
		err := c.follow(ctx)
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

func (c *Cache) follow(ctx context.Context) error {
	revision, err := c.load(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type batch struct {
		watch  int
		answer clientv3.WatchResponse
	}
	batches := make(chan batch)
	for i, prefix := range c.prefixes {
		watch := c.client.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(),
			clientv3.WithRev(revision+1), clientv3.WithProgressNotify())
		go func() {
			for answer := range watch {
				select {
				case batches <- batch{i, answer}:
				case <-ctx.Done():
					return
				}
			}
			// A closed channel without an answer ends the follow too.
			select {
			case batches <- batch{i, clientv3.WatchResponse{Canceled: true}}:
			case <-ctx.Done():
			}
		}()
	}
	// Each watch tells how far it is; together they are as far as the last of them.
	reached := make([]int64, len(c.prefixes))
	for i := range reached {
		reached[i] = revision
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case b := <-batches:
			if b.answer.Canceled {
				return fmt.Errorf("watch %s: %w", c.prefixes[b.watch], b.answer.Err())
			}
			reached[b.watch] = max(reached[b.watch], b.answer.Header.Revision)
			c.apply(b.answer.Events, slices.Min(reached))
		}
	}
}

// load replaces the mirror by one consistent snapshot.
func (c *Cache) load(ctx context.Context) (int64, error) {
	ops := make([]clientv3.Op, len(c.prefixes))
	for i, prefix := range c.prefixes {
		ops[i] = clientv3.OpGet(prefix, clientv3.WithPrefix())
	}
	answer, err := c.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return 0, fmt.Errorf("load state: %w", err)
	}
	buckets := map[string]bucket{}
	for _, response := range answer.Responses {
		for _, kv := range response.GetResponseRange().Kvs {
			put(buckets, string(kv.Key), &entry{raw: kv.Value, revision: kv.ModRevision})
		}
	}
	c.mu.Lock()
	changed := differences(c.buckets, buckets)
	c.buckets = buckets
	c.advance(answer.Header.Revision)
	c.mu.Unlock()
	c.tell(changed)
	return answer.Header.Revision, nil
}

func put(buckets map[string]bucket, key string, e *entry) {
	name := bucketOf(key)
	if buckets[name] == nil {
		buckets[name] = bucket{}
	}
	buckets[name][key] = e
}

func differences(before, after map[string]bucket) []string {
	var keys []string
	for name, values := range after {
		for key, e := range values {
			if old := before[name][key]; old == nil || old.revision != e.revision {
				keys = append(keys, key)
			}
		}
	}
	for name, values := range before {
		for key := range values {
			if after[name][key] == nil {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func (c *Cache) apply(events []*clientv3.Event, revision int64) {
	keys := make([]string, 0, len(events))
	c.mu.Lock()
	for _, e := range events {
		key := string(e.Kv.Key)
		keys = append(keys, key)
		if e.Type == clientv3.EventTypeDelete {
			delete(c.buckets[bucketOf(key)], key)
			continue
		}
		put(c.buckets, key, &entry{raw: e.Kv.Value, revision: e.Kv.ModRevision})
	}
	c.advance(revision)
	c.mu.Unlock()
	c.tell(keys)
}

// advance must be called with mu held.
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

// WaitRevision blocks until everything up to the given revision can be read.
func (c *Cache) WaitRevision(ctx context.Context, revision int64) error {
	for {
		c.mu.RLock()
		reached, moved := c.revision >= revision, c.moved
		c.mu.RUnlock()
		if reached {
			return nil
		}
		// Only a write below our prefixes, or this request, moves a watch on.
		if err := c.client.RequestProgress(clientv3.WithRequireLeader(ctx)); err != nil {
			return fmt.Errorf("wait for revision %d: %w", revision, err)
		}
		select {
		case <-moved:
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for revision %d: %w", revision, ctx.Err())
		}
	}
}

// Loaded blocks until the first snapshot can be read.
func (c *Cache) Loaded(ctx context.Context) error {
	return c.WaitRevision(ctx, 1)
}

// Load reads one value from the mirror. Values are shared between all who read
// them: what they point to must not be changed.
func Load[T any](c *Cache, key string) (Record[T], error) {
	c.mu.RLock()
	e := c.buckets[bucketOf(key)][key]
	c.mu.RUnlock()
	if e == nil {
		return Record[T]{}, fmt.Errorf("read %s: %w", key, ErrNotFound)
	}
	return decodeEntry[T](key, e)
}

func decodeEntry[T any](key string, e *entry) (Record[T], error) {
	if known := e.decoded.Load(); known != nil {
		if value, ok := (*known).(T); ok {
			return Record[T]{Key: key, Value: value, Revision: e.revision}, nil
		}
	}
	r, err := decode[T](key, e.raw, e.revision)
	if err == nil {
		var value any = r.Value
		e.decoded.Store(&value)
	}
	return r, err
}

// LoadAll reads all values below a prefix from the mirror, ordered by key. A
// value that does not decode is left out and logged: one bad record must not
// hide the others. Values are shared, as with Load.
func LoadAll[T any](c *Cache, prefix string) []Record[T] {
	keys, entries := c.below(prefix)
	records := make([]Record[T], 0, len(keys))
	for i, key := range keys {
		r, err := decodeEntry[T](key, entries[i])
		if err != nil {
			c.log.Error("state record is corrupt", "key", key, "error", err)
			continue
		}
		records = append(records, r)
	}
	return records
}

func (c *Cache) below(prefix string) ([]string, []*entry) {
	var keys []string
	c.mu.RLock()
	defer c.mu.RUnlock()
	values := c.buckets[bucketOf(prefix)]
	for key := range values {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	entries := make([]*entry, len(keys))
	for i, key := range keys {
		entries[i] = values[key]
	}
	return keys, entries
}

// Raw reads one value as it is stored, for keys that others own (Patroni's).
func (c *Cache) Raw(key string) (value []byte, revision int64, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.buckets[bucketOf(key)][key]
	if e == nil {
		return nil, 0, false
	}
	return e.raw, e.revision, true
}

// Keys lists the keys below a prefix of at least two parts, in order.
func (c *Cache) Keys(prefix string) []string {
	keys, _ := c.below(prefix)
	return keys
}

// Children lists the parts that follow a prefix of one part, in order: the
// databases below Patroni's namespace.
func (c *Cache) Children(prefix string) []string {
	var names []string
	c.mu.RLock()
	defer c.mu.RUnlock()
	for name, values := range c.buckets {
		if rest, ok := strings.CutPrefix(name, prefix); ok && len(values) > 0 {
			names = append(names, strings.TrimSuffix(rest, "/"))
		}
	}
	slices.Sort(names)
	return names
}

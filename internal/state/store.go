// Package state is the typed, durable state of a home, kept in etcd. It builds
// all keys (keys.go), reads and writes JSON values with compare-and-swap
// (store.go), and mirrors the whole state in memory for those who watch it
// (cache.go).
//
// Every key has one writer; keys.go says which.
package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	// ErrNotFound says that a key does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict says that a key changed since it was read: read again and retry.
	ErrConflict = errors.New("changed meanwhile")
)

// Record is a value with the revision at which it was last written.
type Record[T any] struct {
	Key      string
	Value    T
	Revision int64
}

// answerWithin is how long etcd may take to answer a call whose caller set no deadline. A member of
// etcd answers within 7 s, whatever happens to the others. A call that takes longer is lost,
// perhaps with its connection, and nobody would ever answer it.
var answerWithin = 10 * time.Second

// Within gives a call a deadline if it has none.
func Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, answerWithin)
}

// Store reads and writes values as JSON. A call whose context has no deadline gets one.
type Store struct {
	Client *clientv3.Client
}

// Get reads one value. It returns ErrNotFound if there is none.
func Get[T any](ctx context.Context, s *Store, key string) (Record[T], error) {
	ctx, cancel := Within(ctx)
	defer cancel()
	answer, err := s.Client.Get(ctx, key)
	if err != nil {
		return Record[T]{}, fmt.Errorf("read %s: %w", key, err)
	}
	if len(answer.Kvs) == 0 {
		return Record[T]{}, fmt.Errorf("read %s: %w", key, ErrNotFound)
	}
	return decode[T](string(answer.Kvs[0].Key), answer.Kvs[0].Value, answer.Kvs[0].ModRevision)
}

// List reads all values below a prefix, ordered by key.
func List[T any](ctx context.Context, s *Store, prefix string) ([]Record[T], error) {
	ctx, cancel := Within(ctx)
	defer cancel()
	answer, err := s.Client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	records := make([]Record[T], 0, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		r, err := decode[T](string(kv.Key), kv.Value, kv.ModRevision)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

func decode[T any](key string, value []byte, revision int64) (Record[T], error) {
	r := Record[T]{Key: key, Revision: revision}
	if err := json.Unmarshal(value, &r.Value); err != nil {
		return r, fmt.Errorf("decode %s: %w", key, err)
	}
	return r, nil
}

// Op is one change of a transaction, with the condition under which it may happen.
type Op struct {
	key   string
	cmp   *clientv3.Cmp
	apply *clientv3.Op
	err   error
}

// Put writes a value, whatever was there before. It is for keys that only the caller writes.
func Put(key string, value any, opts ...clientv3.OpOption) Op {
	var data bytes.Buffer
	text := json.NewEncoder(&data)
	text.SetEscapeHTML(false) // nobody reads it as HTML, and it would take six bytes for one
	if err := text.Encode(value); err != nil {
		return Op{key: key, err: err}
	}
	op := clientv3.OpPut(key, strings.TrimSuffix(data.String(), "\n"), opts...)
	return Op{key: key, apply: &op}
}

// Size returns about how many bytes of a transaction the change takes. etcd takes transactions of
// 1.5 MiB.
func (o Op) Size() int {
	if o.apply == nil {
		return len(o.key)
	}
	return len(o.key) + len(o.apply.ValueBytes())
}

// Swap writes a value if the key is still at the revision that was read. Zero means that the key
// must not exist yet.
func Swap(key string, revision int64, value any) Op {
	op := Put(key, value)
	op.cmp = at(key, revision)
	return op
}

// Delete removes a key. The key need not exist.
func Delete(key string) Op {
	op := clientv3.OpDelete(key)
	return Op{key: key, apply: &op}
}

// DeletePrefix removes all keys below a prefix.
func DeletePrefix(prefix string) Op {
	op := clientv3.OpDelete(prefix, clientv3.WithPrefix())
	return Op{key: prefix, apply: &op}
}

// Remove deletes a key if it is still at the revision that was read.
func Remove(key string, revision int64) Op {
	op := Delete(key)
	op.cmp = at(key, revision)
	return op
}

// Unchanged is only a condition: the key is still at this revision.
func Unchanged(key string, revision int64) Op {
	return Op{key: key, cmp: at(key, revision)}
}

// Held is only a condition: the key is the one that was created at this revision, such as the key
// of an election that was won.
func Held(key string, createRevision int64) Op {
	cmp := clientv3.Compare(clientv3.CreateRevision(key), "=", createRevision)
	return Op{key: key, cmp: &cmp}
}

func at(key string, revision int64) *clientv3.Cmp {
	cmp := clientv3.Compare(clientv3.ModRevision(key), "=", revision)
	return &cmp
}

// Commit applies all changes or none. It returns the revision of the commit, or ErrConflict if a
// condition does not hold.
func (s *Store) Commit(ctx context.Context, ops ...Op) (int64, error) {
	conditions, changes, err := Split(ops)
	if err != nil {
		return 0, err
	}
	ctx, cancel := Within(ctx)
	defer cancel()
	answer, err := s.Client.Txn(ctx).If(conditions...).Then(changes...).Commit()
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", firstKey(ops), err)
	}
	if !answer.Succeeded {
		return 0, fmt.Errorf("write %s: %w", firstKey(ops), ErrConflict)
	}
	return answer.Header.Revision, nil
}

// Split returns the operations in etcd's form, for a transaction that also has others' keys.
func Split(ops []Op) (conditions []clientv3.Cmp, changes []clientv3.Op, err error) {
	for _, op := range ops {
		if op.err != nil {
			return nil, nil, fmt.Errorf("encode %s: %w", op.key, op.err)
		}
		if op.cmp != nil {
			conditions = append(conditions, *op.cmp)
		}
		if op.apply != nil {
			changes = append(changes, *op.apply)
		}
	}
	return conditions, changes, nil
}

func firstKey(ops []Op) string {
	if len(ops) == 0 {
		return "nothing"
	}
	return ops[0].key
}

// Update reads a value, lets change alter it, and swaps it in, again and again while someone else
// was quicker. An error of change ends it and is returned unchanged. It is for keys that several
// writers share. change must not have side effects.
func Update[T any](ctx context.Context, s *Store, key string, change func(*T) error) (Record[T], error) {
	for {
		r, err := Get[T](ctx, s, key)
		if err != nil {
			return r, err
		}
		if err := change(&r.Value); err != nil {
			return r, err
		}
		revision, err := s.Commit(ctx, Swap(key, r.Revision, r.Value))
		if errors.Is(err, ErrConflict) {
			continue
		}
		r.Revision = revision
		return r, err
	}
}

package state

import (
	"context"
	"iter"
)

// How much one transaction takes of changes that need not happen together. etcd takes 1.5 MiB, and
// members of earlier releases take 128 operations. The limits leave some room for what a caller
// adds to each transaction.
const (
	batchOps   = 100
	batchBytes = 1 << 20
)

// Batch gathers changes that stand alone, up to what one transaction takes. The zero
// value is empty.
type Batch struct {
	ops   []Op
	bytes int
	keys  map[string]bool
}

// Fits reports whether one more change may be added. A transaction takes each key only once. An
// empty batch takes any change.
func (b *Batch) Fits(op Op) bool {
	return len(b.ops) == 0 || len(b.ops) < batchOps && b.bytes+op.Size() <= batchBytes && !b.keys[op.key]
}

// Add adds a change. It must fit.
func (b *Batch) Add(op Op) {
	if b.keys == nil {
		b.keys = map[string]bool{}
	}
	b.ops, b.bytes, b.keys[op.key] = append(b.ops, op), b.bytes+op.Size(), true
}

// Take returns what was gathered, and empties the batch.
func (b *Batch) Take() []Op {
	ops := b.ops
	*b = Batch{}
	return ops
}

// Batches splits changes that stand alone into portions for one transaction each, in their order.
func Batches(ops []Op) iter.Seq[[]Op] {
	return func(yield func([]Op) bool) {
		var b Batch
		for _, op := range ops {
			if !b.Fits(op) && !yield(b.Take()) {
				return
			}
			b.Add(op)
		}
		if rest := b.Take(); len(rest) > 0 {
			yield(rest)
		}
	}
}

// CommitEach applies any number of changes that stand alone, in several transactions. Each
// transaction has the given conditions. It ends with the first that fails; the earlier ones have
// happened. It returns the revision of the last one, or zero if there is nothing to do.
func (s *Store) CommitEach(ctx context.Context, ops []Op, conditions ...Op) (int64, error) {
	last := int64(0)
	for batch := range Batches(ops) {
		revision, err := s.Commit(ctx, append(batch, conditions...)...)
		if err != nil {
			return last, err
		}
		last = revision
	}
	return last, nil
}

package state

import (
	"slices"
	"strings"
	"sync/atomic"
)

// bucket holds the keys that share their first two parts, in order. So it finds those below a
// longer prefix without looking at the others. Its zero value is empty.
type bucket struct {
	items []item
	// changed is the number of the newest change: see Cache.Changes.
	changed int64
}

type item struct {
	key string
	*entry
}

// entry is one value. It is decoded once, for the type that is first asked for: a key has only one
// type. When the value changes, a new entry replaces it. An entry is never altered.
type entry struct {
	raw      []byte
	revision int64
	decoded  atomic.Pointer[any]
}

// bucketOf returns the part of a key or prefix up to its third slash.
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

func (b *bucket) find(key string) (int, bool) {
	return slices.BinarySearchFunc(b.items, key, func(i item, key string) int { return strings.Compare(i.key, key) })
}

// get returns nil if the key is not there.
func (b *bucket) get(key string) *entry {
	if b == nil {
		return nil
	}
	if at, ok := b.find(key); ok {
		return b.items[at].entry
	}
	return nil
}

func (b *bucket) put(key string, e *entry) {
	at, known := b.find(key)
	if known {
		b.items[at].entry = e
		return
	}
	b.items = slices.Insert(b.items, at, item{key, e})
}

func (b *bucket) remove(key string) {
	if b == nil {
		return
	}
	if at, known := b.find(key); known {
		b.items = slices.Delete(b.items, at, at+1)
	}
}

// below returns a copy of what is below a prefix, in order.
func (b *bucket) below(prefix string) []item {
	if b == nil {
		return nil
	}
	start, _ := b.find(prefix)
	n, _ := slices.BinarySearchFunc(b.items[start:], prefix, func(i item, prefix string) int {
		if strings.HasPrefix(i.key, prefix) {
			return -1
		}
		return 1
	})
	return slices.Clone(b.items[start : start+n])
}

package state

import (
	"slices"
	"strings"
)

// journalSize is how many changes of keys a cache remembers, at least. A caller who asks less often
// looks at everything again.
const journalSize = 8192

// journal remembers which keys changed last. Its zero value remembers nothing, and knows that.
type journal struct {
	notes []note // the oldest first
	lost  int64  // the newest change of which notes may be missing
}

// note says that a key changed with a change. Cache.changes counts changes.
type note struct {
	change int64
	key    string
}

func (j *journal) add(change int64, key string) {
	if len(j.notes) >= 2*journalSize {
		old := len(j.notes) - journalSize
		j.lost = j.notes[old-1].change
		j.notes = append(j.notes[:0:0], j.notes[old:]...)
	}
	j.notes = append(j.notes, note{change, key})
}

// forget says that everything may have changed with this change.
func (j *journal) forget(change int64) { j.notes, j.lost = nil, change }

// since returns the keys that changed after a change. complete is false if the journal no longer
// knows which.
func (j *journal) since(change int64, prefixes []string) (keys []string, complete bool) {
	if change < j.lost {
		return nil, false
	}
	first, _ := slices.BinarySearchFunc(j.notes, change+1, func(n note, change int64) int { return int(n.change - change) })
	for _, n := range j.notes[first:] {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(n.key, p) }) {
			keys = append(keys, n.key)
		}
	}
	return keys, true
}

// Since returns the keys below some prefixes that changed since the caller last asked, in the order
// of their changes. A key that changed several times is there several times. now is what to give as
// last the next time. The first time that is 0. If complete is false, any key may have changed, and
// keys is empty. What the caller reads afterwards may be newer. Then the next call tells of it
// again.
func (c *Cache) Since(last int64, prefixes ...string) (keys []string, now int64, complete bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	keys, complete = c.journal.since(last, prefixes)
	return keys, c.changes, complete && last > 0
}

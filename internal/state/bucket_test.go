package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestBucket compares a bucket with a map under random changes.
func TestBucket(t *testing.T) {
	var b bucket
	want := map[string]int64{}
	for n := range int64(2000) {
		key := fmt.Sprintf("/howdah/way/%c/%d", 'a'+rune(rand.N(4)), rand.N(40))
		if rand.N(3) == 0 {
			b.remove(key)
			delete(want, key)
		} else {
			b.put(key, &entry{revision: n})
			want[key] = n
		}
		prefix := fmt.Sprintf("/howdah/way/%c/", 'a'+rune(rand.N(5)))
		var got, expected []string
		for _, i := range b.below(prefix) {
			got = append(got, fmt.Sprintf("%s@%d", i.key, i.revision))
		}
		for key, revision := range want {
			if strings.HasPrefix(key, prefix) {
				expected = append(expected, fmt.Sprintf("%s@%d", key, revision))
			}
		}
		slices.Sort(got)
		slices.Sort(expected)
		if !slices.Equal(got, expected) {
			t.Fatalf("below %s: %q, want %q", prefix, got, expected)
		}
		if e := b.get(key); (e != nil) != (want[key] == n && e != nil) {
			t.Fatalf("%s: %+v", key, e)
		}
	}
	if !slices.IsSortedFunc(b.items, func(x, y item) int { return strings.Compare(x.key, y.key) }) {
		t.Error("the keys are not in order")
	}
	var none *bucket
	if none.get("x") != nil || len(none.below("x")) != 0 {
		t.Error("no bucket holds something")
	}
	none.remove("x")
}

// TestChanges checks that each family has a number, which stays while other families change.
func TestChanges(t *testing.T) {
	c := NewCache(nil, nil, Root)
	c.buckets = map[string]*bucket{"/howdah/spec/": {changed: 3}, "/howdah/layout/": {changed: 7}}
	for want, prefixes := range map[int64][]string{
		0: {HostRoot}, 3: {InstanceRoot}, 7: {ClusterRoot, LayoutRoot, HostRoot},
	} {
		if got := c.Changes(prefixes...); got != want {
			t.Errorf("%q: %d, want %d", prefixes, got, want)
		}
	}
}

// TestStreams checks that whoever leaves a stream takes all others along, once.
func TestStreams(t *testing.T) {
	c := NewCache(nil, nil, Root)
	first, also := streamOf(c.client), streamOf(c.client)
	first.leave()
	also.leave()
	if next := streamOf(c.client); next.number != first.number+1 || next.name() == first.name() {
		t.Errorf("%+v after %+v", next, first)
	}
}

// Package depth has a run for each commit take a sample of the tests that take longest, and every other
// run take all of them. What is drawn follows from the commit, so that a run can be repeated, and so that
// one commit after the other draws everything.
package depth

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Draw is the variable with which a run takes a sample. Its value decides what is drawn. Where it is
// unset or empty, everything runs. scripts/test sets it, and its part "deep" does not.
const Draw = "HOWDAH_TEST_DRAW"

// One of so many deep tests is drawn.
const of = 6

// Deep ends a test that is not drawn. It is for tests that take a minute and more, and whose promise is
// tested less deeply elsewhere.
func Deep(t testing.TB) {
	t.Helper()
	if seed := os.Getenv(Draw); !drawn(seed, t.Name()) {
		t.Skipf("not drawn by %s=%s: scripts/test deep runs it", Draw, seed)
	}
}

func drawn(seed, name string) bool { return seed == "" || lot(seed, name)%of == 0 }

// One ends a test that is not the one of its group that is drawn: each run has one of them. It is for
// tests of several minutes, of which two would make a run too long.
func One(t testing.TB, group ...string) {
	t.Helper()
	if seed := os.Getenv(Draw); !chosen(seed, t.Name(), group) {
		t.Skipf("not drawn of its group by %s=%s: scripts/test deep runs it", Draw, seed)
	}
}

func chosen(seed, name string, group []string) bool {
	return seed == "" || group[draw(seed, strings.Join(group, " "), 1, len(group))[0]] == name
}

// Some returns n of a test's cases, in their order, or all of them where everything runs. It logs which.
func Some[T any](t testing.TB, n int, cases []T) []T {
	t.Helper()
	seed := os.Getenv(Draw)
	if seed == "" || n >= len(cases) {
		return cases
	}
	numbers := draw(seed, t.Name(), n, len(cases))
	t.Logf("%s=%s draws %d of %d cases: %v", Draw, seed, n, len(cases), numbers[:min(n, 20)])
	var some []T
	for _, i := range numbers {
		some = append(some, cases[i])
	}
	return some
}

// draw returns n different numbers below all, in order.
func draw(seed, name string, n, all int) []int {
	numbers := make([]int, all)
	lots := make([]uint64, all)
	for i := range all {
		numbers[i], lots[i] = i, lot(seed, name, strconv.Itoa(i))
	}
	slices.SortFunc(numbers, func(a, b int) int { return cmp.Compare(lots[a], lots[b]) })
	slices.Sort(numbers[:n])
	return numbers[:n]
}

// lot is a number that follows from texts.
func lot(texts ...string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return binary.BigEndian.Uint64(sum[:])
}

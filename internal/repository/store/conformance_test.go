package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/testkit/s3test"
)

// stores are what every test of the suite runs with.
func stores(t *testing.T) map[string]func(t *testing.T) Store {
	t.Helper()
	var server *s3test.Server
	n := 0
	return map[string]func(t *testing.T) Store{
		"directory": func(t *testing.T) Store {
			t.Helper()
			d, err := OpenDirectory(t.TempDir(), "")
			must(t, err)
			return d
		},
		"s3": func(t *testing.T) Store {
			t.Helper()
			if server == nil {
				server = s3test.Start(t)
			}
			n++
			s, err := OpenS3(s3Config(server, fmt.Sprintf("some where/%d/", n)))
			must(t, err)
			return s
		},
	}
}

func s3Config(server *s3test.Server, prefix string) S3Config {
	return S3Config{
		Endpoint: server.Endpoint, Bucket: s3test.Bucket, Prefix: prefix, CA: server.CA,
		AccessKey: s3test.AccessKey, Secret: s3test.Secret,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				name string
				test func(t *testing.T, s Store)
			}{
				{"objects", testObjects},
				{"ranges", testRanges},
				{"a body that breaks", testBroken},
				{"long objects", testLong},
				{"names", testNames},
				{"lists", testLists},
				{"pages", testPages},
				{"deletion", testDeletion},
				{"uploads", testUploads},
				{"uploads go wrong", testWrongUploads},
				{"sweeping", testSweep},
				{"marker", testMarker},
				{"at once", testAtOnce},
			} {
				s := open(t)
				t.Run(c.name, func(t *testing.T) { c.test(t, s) })
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, s Store, key, text string) Object {
	t.Helper()
	object, err := s.Put(t.Context(), key, strings.NewReader(text))
	must(t, err)
	return object
}

func get(t testing.TB, s Store, key string, offset, length int64) string {
	t.Helper()
	body, _, err := s.Get(t.Context(), key, offset, length)
	must(t, err)
	defer body.Close()
	text, err := io.ReadAll(body)
	must(t, err)
	return string(text)
}

func testObjects(t *testing.T, s Store) {
	before := time.Now().Add(-2 * time.Second)
	for _, text := range []string{"some text", "", "other"} {
		object := put(t, s, "a/b/c d+%41&ü", text)
		head, err := s.Head(t.Context(), "a/b/c d+%41&ü")
		must(t, err)
		if head.Size != int64(len(text)) || object.Size != head.Size || object.ETag != head.ETag || head.ETag == "" || object.Key != "a/b/c d+%41&ü" {
			t.Errorf("%q was put as %+v, is %+v", text, object, head)
		}
		if head.Modified.Before(before) || head.Modified.After(time.Now().Add(2*time.Second)) {
			t.Errorf("it was written at %s", head.Modified)
		}
		if got := get(t, s, "a/b/c d+%41&ü", 0, -1); got != text {
			t.Errorf("%q is %q", text, got)
		}
	}
	for _, key := range []string{"none", "a", "a/b", "a/b/c d", "a/b/c d+%41&ü/x", "a/b/c d+A&ü"} {
		if _, _, err := s.Get(t.Context(), key, 0, -1); !errors.Is(err, ErrNotFound) {
			t.Errorf("get %s: %v", key, err)
		}
		if _, err := s.Head(t.Context(), key); !errors.Is(err, ErrNotFound) {
			t.Errorf("head %s: %v", key, err)
		}
	}
}

func testRanges(t *testing.T, s Store) {
	put(t, s, "digits", "0123456789")
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, -1, "0123456789"}, {0, 3, "012"}, {4, -1, "456789"}, {4, 2, "45"}, {8, 100, "89"}, {10, -1, ""}, {50, 5, ""}, {3, 0, ""}} {
		body, object, err := s.Get(t.Context(), "digits", c.offset, c.length)
		must(t, err)
		text, err := io.ReadAll(body)
		if body.Close(); err != nil || string(text) != c.want || object.Size != 10 {
			t.Errorf("%d+%d: %q of %d, %v", c.offset, c.length, text, object.Size, err)
		}
	}
}

func testBroken(t *testing.T, s Store) {
	put(t, s, "x", "before")
	broken := errors.New("broken")
	for _, size := range []int{0, 10, pieceSize - 1, pieceSize, pieceSize + 10, 3*pieceSize + 10} {
		for _, end := range []error{broken, io.ErrUnexpectedEOF} {
			body := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(end))
			if _, err := s.Put(t.Context(), "x", body); !errors.Is(err, end) {
				t.Errorf("a body that breaks after %d: %v", size, err)
			}
		}
	}
	if got := get(t, s, "x", 0, -1); got != "before" {
		t.Errorf("it has %d bytes now", len(got))
	}
}

func testLong(t *testing.T, s Store) {
	for _, size := range []int{pieceSize - 1, pieceSize, pieceSize + 1, 2*pieceSize + 77777} {
		text := random(size)
		object, err := s.Put(t.Context(), "long", iotest.HalfReader(bytes.NewReader(text)))
		must(t, err)
		if got := get(t, s, "long", 0, -1); got != string(text) || object.Size != int64(size) {
			t.Errorf("of %d bytes came %d, it says %d", size, len(got), object.Size)
		}
	}
}

func random(n int) []byte {
	text := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(text)
	return text
}

func testNames(t *testing.T, s Store) {
	ctx := t.Context()
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", "./a", "a/./b", "\x00", "a\x00b", "a\nb", "\xff", ".howdah", ".howdah/put/x", "x/.howdah/y",
		strings.Repeat("n", MaxName+1), strings.Repeat("n/", MaxKey/2) + "nn", "\uffff",
	} {
		if _, err := s.Put(ctx, key, strings.NewReader("x")); !errors.Is(err, ErrName) {
			t.Errorf("put %q: %v", key, err)
		}
		if _, err := s.Begin(ctx, key); !errors.Is(err, ErrName) {
			t.Errorf("begin %q: %v", key, err)
		}
		if _, _, err := s.Get(ctx, key, 0, -1); !errors.Is(err, ErrNotFound) {
			t.Errorf("get %q: %v", key, err)
		}
		if err := s.Delete(ctx, "a", key); !errors.Is(err, ErrName) {
			t.Errorf("delete %q: %v", key, err)
		}
	}
	for _, key := range []string{strings.Repeat("n", 200), "...", "-", "~", "*?[a]", `a\b`, "$(x)", "a b/ c", " ", strings.Repeat("n/", 200) + "n"} {
		put(t, s, key, key)
		if got := get(t, s, key, 0, -1); got != key {
			t.Errorf("%q is %q", key, got)
		}
	}
	// Directories and files cannot have the same names. S3 servers other than those that keep files
	// can do both.
	put(t, s, "both", "1")
	if _, err := s.Put(ctx, "both/x", strings.NewReader("2")); err != nil && !errors.Is(err, ErrName) {
		t.Errorf("put both/x: %v", err)
	}
	put(t, s, "dir/x", "1")
	if _, err := s.Put(ctx, "dir", strings.NewReader("2")); err != nil && !errors.Is(err, ErrName) {
		t.Errorf("put dir: %v", err)
	}
	if got := get(t, s, "both", 0, -1) + get(t, s, "dir/x", 0, -1); got != "11" {
		t.Errorf("they have %q", got)
	}
}

// flat returns what a page has, in order.
func flat(p Page) []string {
	all := slices.Clone(p.Prefixes)
	for _, o := range p.Objects {
		all = append(all, o.Key)
	}
	slices.Sort(all)
	return all
}

func testLists(t *testing.T, s Store) {
	keys := []string{"a", "a-b", "a-b0", "a.d/x", "a0", "b/1/x", "b/1/y", "b/1-/z", "b/2", "b/10/q/r/s", "c/ü", "d/e/f"}
	for _, key := range keys {
		put(t, s, key, key)
	}
	for _, c := range []struct {
		query Query
		want  []string
	}{
		{Query{}, keys},
		{Query{Fold: true}, []string{"a", "a-b", "a-b0", "a.d/", "a0", "b/", "c/", "d/"}},
		{Query{Prefix: "a"}, []string{"a", "a-b", "a-b0", "a.d/x", "a0"}},
		{Query{Prefix: "a."}, []string{"a.d/x"}},
		{Query{Prefix: "a.", Fold: true}, []string{"a.d/"}},
		{Query{Prefix: "b/"}, []string{"b/1-/z", "b/1/x", "b/1/y", "b/10/q/r/s", "b/2"}},
		{Query{Prefix: "b/", Fold: true}, []string{"b/1-/", "b/1/", "b/10/", "b/2"}},
		{Query{Prefix: "b/1", Fold: true}, []string{"b/1-/", "b/1/", "b/10/"}},
		{Query{Prefix: "b/1/"}, []string{"b/1/x", "b/1/y"}},
		{Query{Prefix: "b", Fold: true}, []string{"b/"}},
		{Query{Prefix: "d/e/f"}, []string{"d/e/f"}},
		{Query{Prefix: "d/e/f/"}, nil},
		{Query{Prefix: "d/e/f/g"}, nil},
		{Query{Prefix: "e"}, nil},
		{Query{Prefix: "/"}, nil},
		{Query{Prefix: ".howdah/"}, nil},
		{Query{Prefix: "b/../b/"}, nil},
		{Query{Prefix: "../"}, nil},
		{Query{Prefix: "\x00"}, nil},
		{Query{After: "b/1/x"}, []string{"b/1/y", "b/10/q/r/s", "b/2", "c/ü", "d/e/f"}},
		{Query{After: "b/1/"}, []string{"b/1/x", "b/1/y", "b/10/q/r/s", "b/2", "c/ü", "d/e/f"}},
		{Query{After: "b/1", Prefix: "b/"}, []string{"b/1-/z", "b/1/x", "b/1/y", "b/10/q/r/s", "b/2"}},
		{Query{After: "b/1/", Prefix: "b/", Fold: true}, []string{"b/10/", "b/2"}},
		{Query{After: "a", Prefix: "b/", Fold: true}, []string{"b/1-/", "b/1/", "b/10/", "b/2"}},
		{Query{After: "zzz"}, nil},
	} {
		want := slices.Sorted(slices.Values(c.want))
		c.query.Max = MaxList
		page, err := s.List(t.Context(), c.query)
		must(t, err)
		if diff := cmp.Diff(want, flat(page)); len(want)+len(flat(page)) > 0 && diff != "" || page.Next != "" {
			t.Errorf("%+v: next %q\n%s", c.query, page.Next, diff)
		}
	}
	page, err := s.List(t.Context(), Query{Prefix: "d/", Max: 1})
	must(t, err)
	head, err := s.Head(t.Context(), "d/e/f")
	must(t, err)
	if o := page.Objects[0]; o.Size != 5 || o.ETag != head.ETag || o.Modified.Sub(head.Modified).Abs() > time.Second {
		t.Errorf("listed as %+v, is %+v", o, head)
	}
}

// testPages goes through random keys with pages of every size.
func testPages(t *testing.T, s Store) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"a", "b", "a-", "a.", "a0", "bb"}
	keys := map[string]bool{}
	for range 40 {
		var parts []string
		for range 1 + random.IntN(3) {
			parts = append(parts, words[random.IntN(len(words))])
		}
		key := strings.Join(parts, "/") + "/end" // no name is both
		keys[key] = true
		put(t, s, key, "x")
	}
	for _, prefix := range []string{"", "a", "a/", "a/a"} {
		for _, fold := range []bool{false, true} {
			var want []string
			for key := range keys {
				if rest, ok := strings.CutPrefix(key, prefix); ok {
					if first, _, found := strings.Cut(rest, "/"); found && fold {
						key = prefix + first + "/"
					}
					want = append(want, key)
				}
			}
			slices.Sort(want)
			want = slices.Compact(want)
			for _, size := range []int{1, 2, 3, 7, 1000} {
				if diff := cmp.Diff(want, pages(t, s, Query{Prefix: prefix, Fold: fold, Max: size})); diff != "" {
					t.Errorf("%q, fold %v, %d at a time:\n%s", prefix, fold, size, diff)
				}
			}
		}
	}
}

func pages(t *testing.T, s Store, query Query) (all []string) {
	t.Helper()
	for range 1000 {
		page, err := s.List(t.Context(), query)
		must(t, err)
		if got := flat(page); len(got) > query.Max {
			t.Fatalf("%d entries, asked for %d", len(got), query.Max)
		}
		all = append(all, flat(page)...)
		if page.Next == "" {
			return all
		}
		query.After = page.Next
	}
	t.Fatal("the list has no end")
	return nil
}

func testDeletion(t *testing.T, s Store) {
	ctx := t.Context()
	put(t, s, "a/b/c", "1")
	put(t, s, "a/d", "2")
	body, _, err := s.Get(ctx, "a/d", 0, -1)
	must(t, err)
	must(t, s.Delete(ctx, "a/b/c", "a/none", "none/at/all", "a/b/c"))
	must(t, s.Delete(ctx))
	must(t, s.Delete(ctx, "a")) // no object
	if page, err := s.List(ctx, Query{Max: 10}); err != nil || !slices.Equal(flat(page), []string{"a/d"}) {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err := s.List(ctx, Query{Prefix: "a/", Fold: true, Max: 10}); err != nil || !slices.Equal(flat(page), []string{"a/d"}) {
		t.Errorf("%+v, %v", page, err)
	}
	must(t, s.Delete(ctx, "a/d"))
	if text, err := io.ReadAll(body); err != nil || string(text) != "2" {
		t.Errorf("who had begun to read got %q, %v", text, err)
	}
	body.Close()
	put(t, s, "a", "where a directory was")
}

func part(t testing.TB, s Store, key, id string, number int, text []byte) Part {
	t.Helper()
	p, err := s.Part(t.Context(), key, id, number, Body{bytes.NewReader(text), int64(len(text))})
	must(t, err)
	if p.Number != number || p.Size != int64(len(text)) || p.ETag == "" {
		t.Errorf("part %d of %d bytes is %+v", number, len(text), p)
	}
	return p
}

func testUploads(t *testing.T, s Store) {
	ctx := t.Context()
	id, err := s.Begin(ctx, "a/up")
	must(t, err)
	first, second, third := random(6<<20), random(pieceSize+5), random(3)
	parts := make([]Part, 3)
	parts[2] = part(t, s, "a/up", id, 9, third)
	part(t, s, "a/up", id, 2, random(5<<20))
	parts[1] = part(t, s, "a/up", id, 2, second)
	parts[0] = part(t, s, "a/up", id, 1, first)
	part(t, s, "a/up", id, 20, random(10)) // not used
	if _, err := s.Head(ctx, "a/up"); !errors.Is(err, ErrNotFound) {
		t.Errorf("before it is whole: %v", err)
	}
	object, err := s.Complete(ctx, "a/up", id, parts)
	must(t, err)
	want := string(first) + string(second) + string(third)
	if got := get(t, s, "a/up", 0, -1); got != want || object.Size != int64(len(want)) {
		t.Errorf("%d bytes of %d, it says %d", len(got), len(want), object.Size)
	}
	if head, err := s.Head(ctx, "a/up"); err != nil || head.ETag != object.ETag {
		t.Errorf("%+v is %+v, %v", object, head, err)
	}
	if page, err := s.List(ctx, Query{Max: 100}); err != nil || !slices.Equal(flat(page), []string{"a/up"}) {
		t.Errorf("%+v, %v", page, err)
	}
	// Whoever did not hear that it is complete asks once more. S3 servers differ in what they say.
	if _, err := s.Complete(ctx, "a/up", id, parts); err != nil && !errors.Is(err, ErrNotFound) {
		t.Errorf("completed twice: %v", err)
	}
	if _, err := s.Part(ctx, "a/up", id, 1, Body{strings.NewReader("x"), 1}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a part of what is complete: %v", err)
	}
}

func testWrongUploads(t *testing.T, s Store) {
	ctx := t.Context()
	id, err := s.Begin(ctx, "up")
	must(t, err)
	one := part(t, s, "up", id, 1, random(6<<20))
	broken := errors.New("broken")
	for _, size := range []int64{100, pieceSize + 100} {
		body := io.MultiReader(io.LimitReader(zeros{}, size-1), iotest.ErrReader(broken))
		if _, err := s.Part(ctx, "up", id, 2, Body{body, size}); !errors.Is(err, broken) {
			t.Errorf("a part of %d that breaks: %v", size, err)
		}
	}
	two := part(t, s, "up", id, 2, []byte("2"))
	for name, c := range map[string]struct {
		key, id string
		parts   []Part
		err     error
	}{
		"no parts":     {"up", id, nil, ErrPart},
		"order":        {"up", id, []Part{two, one}, ErrPart},
		"twice":        {"up", id, []Part{one, one}, ErrPart},
		"never sent":   {"up", id, []Part{one, {Number: 3, ETag: two.ETag}}, ErrPart},
		"other etag":   {"up", id, []Part{one, {Number: 2, ETag: one.ETag}}, ErrPart},
		"number":       {"up", id, []Part{{Number: 0, ETag: one.ETag}}, ErrPart},
		"another key":  {"down", id, []Part{one}, ErrNotFound},
		"no such id":   {"up", strings.Repeat("0", 32), []Part{one}, ErrNotFound},
		"hostile id":   {"up", "../../x", []Part{one}, ErrNotFound},
		"hostile id 2": {"up", ".", []Part{one}, ErrNotFound},
	} {
		if _, err := s.Complete(ctx, c.key, c.id, slices.Clone(c.parts)); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, number := range []int{0, -1, MaxParts + 1} {
		if _, err := s.Part(ctx, "up", id, number, Body{strings.NewReader("x"), 1}); !errors.Is(err, ErrPart) {
			t.Errorf("part %d: %v", number, err)
		}
	}
	if _, err := s.Complete(ctx, "up", id, []Part{one, two}); err != nil {
		t.Errorf("after all that: %v", err)
	}
	id, err = s.Begin(ctx, "gone")
	must(t, err)
	part(t, s, "gone", id, 1, []byte("1"))
	must(t, s.Abort(ctx, "gone", id))
	if err := s.Abort(ctx, "gone", id); !errors.Is(err, ErrNotFound) {
		t.Errorf("aborted again: %v", err)
	}
}

// zeros is a body without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func testSweep(t *testing.T, s Store) {
	ctx := t.Context()
	id, err := s.Begin(ctx, "up")
	must(t, err)
	one := part(t, s, "up", id, 1, []byte("1"))
	put(t, s, "whole", "x")
	must(t, s.Sweep(ctx, time.Now().Add(-time.Hour)))
	two := part(t, s, "up", id, 1, []byte("2"))
	must(t, s.Sweep(ctx, time.Now().Add(time.Hour)))
	for _, p := range []Part{one, two} {
		if _, err := s.Complete(ctx, "up", id, []Part{p}); !errors.Is(err, ErrNotFound) {
			t.Errorf("complete: %v", err)
		}
	}
	if got := get(t, s, "whole", 0, -1); got != "x" {
		t.Errorf("what is whole is %q", got)
	}
}

func testMarker(t *testing.T, s Store) {
	ctx := t.Context()
	if err := CheckMarker(ctx, s, "one"); !errors.Is(err, ErrNoMarker) {
		t.Errorf("nothing: %v", err)
	}
	m := Marker{ID: "one", Home: "h", Created: time.Now().UTC().Truncate(time.Second)}
	must(t, WriteMarker(ctx, s, m))
	must(t, CheckMarker(ctx, s, "one"))
	must(t, WriteMarker(ctx, s, m))
	if got, err := ReadMarker(ctx, s); err != nil || got != m {
		t.Errorf("%+v, %v", got, err)
	}
	if err := WriteMarker(ctx, s, Marker{ID: "two"}); !errors.Is(err, ErrOther) {
		t.Errorf("written over: %v", err)
	}
	put(t, s, MarkerKey, "{}")
	if err := CheckMarker(ctx, s, ""); !errors.Is(err, ErrNoMarker) {
		t.Errorf("without id: %v", err)
	}
}

// testAtOnce puts, reads, lists and deletes at the same time: what is read is always whole.
func testAtOnce(t *testing.T, s Store) {
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	failed := make(chan error, 8)
	for worker := range 4 {
		go func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("dir/%d/deep/%d", i%3, worker%2)
				text := strings.Repeat(string(rune('a'+worker)), 1+i%3*100000)
				_, err := s.Put(ctx, key, strings.NewReader(text))
				if err == nil && i%4 == 3 {
					err = s.Delete(ctx, key)
				}
				// versitygw may find a directory that another deletion is about to remove.
				if err != nil && !errors.Is(err, ErrName) || ctx.Err() != nil {
					failed <- err
					return
				}
			}
		}()
		go func() {
			for i := 0; ; i++ {
				if err := readWhole(ctx, s, fmt.Sprintf("dir/%d/deep/%d", i%3, worker%2)); err != nil && !errors.Is(err, ErrNotFound) {
					failed <- err
					return
				}
			}
		}()
	}
	for range cap(failed) {
		if err := <-failed; ctx.Err() == nil {
			t.Error(err)
		}
	}
}

func readWhole(ctx context.Context, s Store, key string) error {
	body, object, err := s.Get(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if int64(len(text)) != object.Size || strings.Trim(string(text), string(text[0])) != "" {
		return fmt.Errorf("%s: %d of %d bytes, or two objects", key, len(text), object.Size)
	}
	_, err = s.List(ctx, Query{Prefix: "dir/", Fold: true, Max: 10})
	return err
}

package transfer

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"howdah/internal/repository/store"
)

// counted is a store that counts what is written, and can be made to fail.
type counted struct {
	store.Objects
	mu   sync.Mutex
	puts []string // guarded by mu
	fail string   // the key whose writing fails
}

func (c *counted) Put(ctx context.Context, key string, body io.Reader) (store.Object, error) {
	if key == c.fail {
		return store.Object{}, store.ErrFull
	}
	c.mu.Lock()
	c.puts = append(c.puts, key)
	c.mu.Unlock()
	return c.Objects.Put(ctx, key, body)
}

func directory(t *testing.T) *counted {
	t.Helper()
	d, err := store.OpenDirectory(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	return &counted{Objects: d}
}

func (c *counted) fill(t *testing.T, objects map[string]string) {
	t.Helper()
	for key, text := range objects {
		if _, err := c.Objects.Put(t.Context(), key, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *counted) text(t *testing.T, key string) string {
	t.Helper()
	body, _, err := c.Get(t.Context(), key, 0, -1)
	if err != nil {
		return err.Error()
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func between(source, target store.Objects, ways ...Way) Copy {
	return Copy{Source: source, Target: target, Ways: ways, MaxObjects: 10, MaxBytes: 100, Progress: func(int64, int64) {}}
}

var ways = []Way{
	{From: "a/backup/a/L1/", To: "b/backup/b/L1/"},
	{From: "a/archive/a/", To: "b/archive/b/", Want: func(rest string) bool { return strings.HasSuffix(rest, "3") }},
}

func TestOnlyWhatWasAskedForIsCopied(t *testing.T) {
	source, target := directory(t), directory(t)
	source.fill(t, map[string]string{
		"a/backup/a/L1/x": "one", "a/backup/a/L1/y/z": "", "a/backup/a/L2/x": "other", "a/archive/a/1/03": "wal", "a/archive/a/1/04": "later", "c/x": "elsewhere",
	})
	c := between(source, target, ways...)
	var last int64
	c.Progress = func(done, of int64) {
		if done > of || of != 6 {
			t.Errorf("progress is %d of %d", done, of)
		}
		last = max(last, done)
	}
	all, err := c.Run(t.Context())
	if err != nil || all != (Size{3, 6}) || last != 6 {
		t.Errorf("copied %+v, %d, %v", all, last, err)
	}
	for key, want := range map[string]string{"b/backup/b/L1/x": "one", "b/backup/b/L1/y/z": "", "b/archive/b/1/03": "wal"} {
		if got := target.text(t, key); got != want {
			t.Errorf("%s has %q", key, got)
		}
	}
	if len(target.puts) != 3 {
		t.Errorf("written: %q", target.puts)
	}
}

func TestACopyGoesOnWhereItWas(t *testing.T) {
	source, target := directory(t), directory(t)
	source.fill(t, map[string]string{"a/backup/a/L1/1": "one", "a/backup/a/L1/2": "two", "a/backup/a/L1/3": "three"})
	target.fail = "b/backup/b/L1/3"
	if _, err := between(source, target, ways[0]).Run(t.Context()); !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	target.fail = ""
	// What is there was broken off, or is of another size.
	target.fill(t, map[string]string{"b/backup/b/L1/2": "t"})
	target.puts = nil
	if _, err := between(source, target, ways[0]).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if target.text(t, "b/backup/b/L1/2") != "two" || target.text(t, "b/backup/b/L1/3") != "three" || len(target.puts) > 2 {
		t.Errorf("written: %q", target.puts)
	}
	target.puts = nil
	if _, err := between(source, target, ways[0]).Run(t.Context()); err != nil || len(target.puts) > 0 {
		t.Errorf("a whole copy is written again: %q, %v", target.puts, err)
	}
}

// strange is a store whose owner means harm.
type strange struct {
	store.Objects
	page func(q store.Query) store.Page
	body string
}

func (s strange) List(_ context.Context, q store.Query) (store.Page, error) { return s.page(q), nil }

func (s strange) Get(context.Context, string, int64, int64) (io.ReadCloser, store.Object, error) {
	return io.NopCloser(strings.NewReader(s.body)), store.Object{}, nil
}

func TestASourceThatMeansHarm(t *testing.T) {
	const in = "a/backup/a/L1/"
	one := func(o store.Object) func(store.Query) store.Page {
		return func(store.Query) store.Page { return store.Page{Objects: []store.Object{o}} }
	}
	endless := 0
	for name, test := range map[string]struct {
		page func(store.Query) store.Page
		body string
		want error
	}{
		"elsewhere": {page: one(store.Object{Key: "c/backup/x"}), want: ErrList},
		"upward":    {page: one(store.Object{Key: in + "../../../../other/x"}), want: ErrList},
		"ours":      {page: one(store.Object{Key: in + ".howdah/x"}), want: ErrList},
		"control":   {page: one(store.Object{Key: in + "x\ny"}), want: ErrList},
		"no name":   {page: one(store.Object{Key: in}), want: ErrList},
		"backward": {page: func(store.Query) store.Page {
			return store.Page{Objects: []store.Object{{Key: in + "b"}, {Key: in + "a"}}}
		}, want: ErrList},
		"twice": {page: func(store.Query) store.Page {
			return store.Page{Objects: []store.Object{{Key: in + "b"}, {Key: in + "b"}}}
		}, want: ErrList},
		"in a circle": {page: func(store.Query) store.Page { return store.Page{Next: in + "a"} }, want: ErrList},
		"for ever": {page: func(store.Query) store.Page {
			endless++
			key := in + strings.Repeat("a", endless%200+1) + strings.Repeat("z", endless/200)
			return store.Page{Objects: []store.Object{{Key: key}}, Next: key}
		}, want: ErrTooMuch},
		"nothing for ever": {page: func(q store.Query) store.Page { return store.Page{Next: q.After + "a"} }, want: ErrList},
		"negative":         {page: one(store.Object{Key: in + "a", Size: -1}), want: ErrTooMuch},
		"huge":             {page: one(store.Object{Key: in + "a", Size: 1 << 40}), want: ErrTooMuch},
		"longer":           {page: one(store.Object{Key: in + "a", Size: 3}), body: "four", want: ErrChanged},
		"shorter":          {page: one(store.Object{Key: in + "a", Size: 3}), body: "2.", want: ErrChanged},
	} {
		target := directory(t)
		if _, err := between(strange{page: test.page, body: test.body}, target, ways[0]).Run(t.Context()); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := List(t.Context(), target, "b/", func(o store.Object) error { t.Errorf("%s: %s was written", name, o.Key); return nil }); err != nil {
			t.Error(err)
		}
	}
}

// A list may say one thing when it is measured, and another when it is copied.
func TestASourceThatGrows(t *testing.T) {
	calls, target := 0, directory(t)
	source := strange{body: strings.Repeat("x", 60), page: func(store.Query) store.Page {
		if calls++; calls == 1 {
			return store.Page{}
		}
		return store.Page{Objects: []store.Object{{Key: "a/backup/a/L1/1", Size: 60}, {Key: "a/backup/a/L1/2", Size: 60}}}
	}}
	if _, err := between(source, target, ways[0]).Run(t.Context()); !errors.Is(err, ErrTooMuch) {
		t.Error(err)
	}
}

// A link in the directory of the source leads nowhere.
func TestALinkIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	d, err := store.OpenDirectory(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a/backup/a/L1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"a/backup/a/L1/file": "/etc/passwd", "a/backup/a/L1/dir": "/etc"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	target := directory(t)
	if all, err := between(d, target, ways[0]).Run(t.Context()); err != nil || all.Objects != 0 || len(target.puts) > 0 {
		t.Errorf("copied %+v, %v", all, err)
	}
}

package book_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/lab/book"
)

var began = time.Date(2026, 11, 27, 2, 4, 5, 0, time.UTC)

func add(t *testing.T, b *book.Book, at time.Time) book.Run {
	t.Helper()
	r, err := b.Add(book.Run{Experiments: []string{"e1", "e3"}, Target: "127.0.0.1:5432/app", Quick: true, Began: at})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func state(t *testing.T, b *book.Book, id string, want book.State) book.Status {
	t.Helper()
	s, err := b.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	if s.State != want {
		t.Fatalf("run %s is %q, and not %q", id, s.State, want)
	}
	return s
}

func TestRunsAreFoundAgain(t *testing.T) {
	b := book.Of(t.TempDir())
	if all, err := b.List(); err != nil || len(all) != 0 {
		t.Fatalf("a home without runs lists %v (%v)", all, err)
	}
	if _, err := b.Find(""); !errors.Is(err, book.ErrNone) {
		t.Fatalf("a home without runs has one: %v", err)
	}
	first, second := add(t, b, began), add(t, b, began)
	third := add(t, b, began.Add(time.Minute))
	if first.ID != "20261127-020405" || second.ID != "20261127-020405-2" || third.ID != "20261127-020505" {
		t.Fatalf("the runs are %s, %s and %s", first.ID, second.ID, third.ID)
	}
	all, err := b.List()
	if err != nil || len(all) != 3 || all[0].ID != third.ID {
		t.Fatalf("the list is %v (%v)", all, err)
	}
	newest, err := b.Find("")
	if err != nil || newest.ID != third.ID || newest.Target != "127.0.0.1:5432/app" || !newest.Quick || newest.Dir != b.Dir(third.ID) {
		t.Fatalf("the newest run is %+v (%v)", newest, err)
	}
	for _, bad := range []string{"20990101-000000", "../../etc/passwd", "x"} {
		if _, err := b.Find(bad); !errors.Is(err, book.ErrNone) {
			t.Errorf("there is a run %s: %v", bad, err)
		}
	}
}

func TestAStateIsThatOfTheProgram(t *testing.T) {
	b := book.Of(t.TempDir())
	r := add(t, b, began)
	state(t, b, r.ID, book.Broken)

	unlock, err := book.Lock(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := book.Lock(r); !errors.Is(err, book.ErrBusy) {
		t.Fatalf("two programs make a run: %v", err)
	}
	if err := book.Tell(r, book.Progress{Experiment: "e3", Point: 2, Points: 12, Done: []string{"e1"}}); err != nil {
		t.Fatal(err)
	}
	if s := state(t, b, r.ID, book.Running); s.Progress.Point != 2 || s.Progress.Experiment != "e3" {
		t.Fatalf("it is at %+v", s.Progress)
	}
	unlock()
	state(t, b, r.ID, book.Broken)

	if err := book.Tell(r, book.Progress{Done: []string{"e1", "e3"}}); err != nil {
		t.Fatal(err)
	}
	state(t, b, r.ID, book.Ended)
	if err := book.Tell(r, book.Progress{Done: []string{"e1", "e3"}, Problem: "the report could not be written"}); err != nil {
		t.Fatal(err)
	}
	state(t, b, r.ID, book.Broken)

	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	state(t, b, r.ID, book.Gone)
}

func TestNothingIsLeftOfARunThatCannotBegin(t *testing.T) {
	home := t.TempDir()
	b := book.Of(home)
	file := filepath.Join(home, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Add(book.Run{Dir: filepath.Join(file, "below"), Began: began}); err == nil {
		t.Fatal("a run has a directory below a file")
	}
	if all, err := b.List(); err != nil || len(all) != 0 {
		t.Fatalf("it is listed: %v (%v)", all, err)
	}
}

// A directory may be one where others write. A link there leads nowhere.
func TestNoLinkIsFollowed(t *testing.T) {
	b := book.Of(t.TempDir())
	r := add(t, b, began)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	progress, lock := filepath.Join(r.Dir, "progress-"+r.ID+".json"), filepath.Join(r.Dir, ".run-"+r.ID+".lock")
	for _, path := range []string{progress + ".new", progress, lock} {
		if err := os.Symlink(victim, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := book.Tell(r, book.Progress{Experiment: "e3"}); err != nil {
		t.Error(err)
	}
	if _, err := book.Lock(r); err == nil {
		t.Error("a link was locked")
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if s := state(t, b, r.ID, book.Broken); s.Progress.Experiment != "e3" {
		t.Errorf("it is at %+v", s.Progress)
	}
}

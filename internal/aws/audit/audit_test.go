package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"howdah/internal/testkit"
)

func open(t *testing.T) *Log {
	t.Helper()
	l := Open(filepath.Join(t.TempDir(), "log"), slog.New(slog.DiscardHandler))
	t.Cleanup(l.Close)
	return l
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func call(n int) Record {
	return Record{Time: noon.Add(time.Duration(n) * time.Second), RequestID: fmt.Sprint(n), User: "arn:aws:iam::1:root", Status: 200}
}

func ids(t *testing.T, dir string, from time.Time) string {
	t.Helper()
	var all []string
	if err := Read(dir, from, func(r Record) error { all = append(all, r.RequestID); return nil }); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestWriteAndRead(t *testing.T) {
	l := open(t)
	if got := ids(t, l.dir, time.Time{}); got != "" {
		t.Errorf("before the first call: %s", got)
	}
	for n := range 3 {
		l.Write(call(n))
	}
	if got := ids(t, l.dir, time.Time{}); got != "0 1 2" {
		t.Error(got)
	}
	if got := ids(t, l.dir, noon.Add(time.Second)); got != "1 2" {
		t.Error(got)
	}
	info, err := os.Stat(filepath.Join(l.dir, string(Changed)))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
	stop := errors.New("enough")
	if err := Read(l.dir, time.Time{}, func(Record) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestRotates(t *testing.T) {
	l := open(t)
	changes := l.files[Changed]
	changes.max, changes.keepFiles = 300, 2
	for n := range 40 {
		l.Write(call(n))
	}
	old, err := older(l.dir, string(Changed))
	if err != nil || len(old) != 2 {
		t.Fatalf("%d old files, %v", len(old), err)
	}
	for _, path := range append(old, filepath.Join(l.dir, string(Changed))) {
		if info, err := os.Stat(path); err != nil || info.Size() > 300 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if got := ids(t, l.dir, time.Time{}); !strings.HasSuffix(got, " 38 39") || strings.HasPrefix(got, "0 ") {
		t.Error(got)
	}
}

func TestGoesOnAfterAnEnd(t *testing.T) {
	l := open(t)
	l.Write(call(0))
	l.Close()
	// A crash has cut the last line short.
	f, err := os.OpenFile(filepath.Join(l.dir, string(Changed)), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"2026-`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	l.Write(call(1))
	if got := ids(t, l.dir, time.Time{}); got != "0 1" {
		t.Error(got)
	}
}

func TestStrangersAreCounted(t *testing.T) {
	l := open(t)
	for n := range strangers + 10 {
		l.Write(Record{Time: noon, RequestID: fmt.Sprint("x", n), Code: "SignatureDoesNotMatch"})
	}
	l.Write(call(1))
	l.Write(Record{Time: noon.Add(time.Minute), RequestID: "later"})
	var all []Record
	if err := Read(l.dir, time.Time{}, func(r Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(all) != strangers+2 || all[strangers].Unrecorded != 10 || all[strangers+1].Unrecorded != 0 || all[strangers+1].RequestID != "later" {
		t.Errorf("%d records, the last: %+v", len(all), all[len(all)-2:])
	}
}

// TestGuestsHaveARateOfTheirOwn checks that strangers do not push out the calls by links, that one
// account's do not push out another's, and that they do not push out calls with a signature.
func TestGuestsHaveARateOfTheirOwn(t *testing.T) {
	l := open(t)
	link := func(id, account string) Record {
		return Record{Time: noon, RequestID: id, Account: account, ByLink: true, Status: 200}
	}
	for n := range strangers + 10 {
		l.Write(Record{Time: noon, RequestID: fmt.Sprint("x", n), Account: "claimed"})
	}
	for n := range guests + 5 {
		l.Write(link(fmt.Sprint("a", n), "1"))
	}
	l.Write(link("other", "2"))
	l.Write(Record{Time: noon, RequestID: "x"})
	l.Write(call(1))
	later := link("later", "1")
	later.Time = noon.Add(time.Minute)
	l.Write(later)
	var all []Record
	if err := Read(l.dir, time.Time{}, func(r Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := strangers + guests + 3; len(all) != want {
		t.Fatalf("%d records, not %d", len(all), want)
	}
	for i, want := range map[int]struct {
		id         string
		unrecorded int
	}{
		strangers - 1: {fmt.Sprint("x", strangers-1), 0}, strangers: {"a0", 10}, strangers + guests: {"other", 5}, strangers + guests + 1: {"1", 1}, strangers + guests + 2: {"later", 0},
	} {
		if r := all[i]; r.RequestID != want.id || r.Unrecorded != want.unrecorded {
			t.Errorf("%d: %+v, want %+v", i, r, want)
		}
	}
	if !all[strangers].ByLink || all[strangers].Account != "1" {
		t.Errorf("%+v", all[strangers])
	}
}

// Calls do not fail if the log cannot be written, and that is told once.
func TestCannotWrite(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	l := Open(filepath.Join(dir, "log"), slog.New(slog.NewTextHandler(&told, nil)))
	l.Write(call(1))
	l.Write(call(2))
	if n := strings.Count(told.String(), "audit log cannot be written"); n != 1 {
		t.Errorf("told %d times: %s", n, told.String())
	}
	if err := os.Remove(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	l.Write(call(3))
	l.Close()
	if got := ids(t, l.dir, time.Time{}); got != "3" {
		t.Error(got)
	}
}

func TestNoLog(t *testing.T) {
	var l *Log
	l.Write(call(1))
	l.Close()
}

func TestFollow(t *testing.T) {
	l := open(t)
	l.files[Changed].max = 300
	l.Write(call(0))
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var seen []string
	var done sync.WaitGroup
	following := make(chan struct{})
	done.Go(func() {
		close(following)
		err := Follow(ctx, l.dir, time.Millisecond, func(r Record) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, r.RequestID)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-following
	has := func(id string) func() error {
		return func() error {
			mu.Lock()
			defer mu.Unlock()
			if !strings.Contains(" "+strings.Join(seen, " ")+" ", " "+id+" ") {
				return fmt.Errorf("not seen yet: %s in %v", id, seen)
			}
			return nil
		}
	}
	for n := 1; n < 20; n++ {
		l.Write(call(n))
		if n == 1 {
			// It may have begun to follow after this record.
			continue
		}
		if n == 2 {
			testkit.Eventually(t, 5*time.Second, func() error { l.Write(call(2)); return has("2")() })
			continue
		}
		testkit.Eventually(t, 5*time.Second, has(fmt.Sprint(n)))
	}
	cancel()
	done.Wait()
	mu.Lock()
	defer mu.Unlock()
	if strings.HasPrefix(strings.Join(seen, " "), "0") {
		t.Error("what was there before was shown too")
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/cmd/howdah/screen"
	"howdah/internal/admin/client"
	"howdah/internal/aws/wire"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// fakeLogs are log files of instances, by instance and in order.
type fakeLogs struct {
	mu    sync.Mutex
	files map[string][]fakeLog // guarded by mu
	owner string               // guarded by mu: markers of another one are refused
	away  bool                 // guarded by mu: the host does not answer
	asked int                  // guarded by mu: while it was away
}

type fakeLog struct{ name, text string }

// set changes what is there.
func (f *fakeLogs) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeLogs) list(instance string) (any, *wire.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		f.asked++
		return nil, wire.NewError(rds.ErrDBInstanceNotReady, "the host does not answer")
	}
	out := &rds.DescribeDBLogFilesResponse{DescribeDBLogFiles: []rds.DescribeDBLogFilesDetails{}}
	for _, file := range f.files[instance] {
		out.DescribeDBLogFiles = append(out.DescribeDBLogFiles, rds.DescribeDBLogFilesDetails{
			LogFileName: ptr(file.name), LastWritten: ptr(int64(0)), Size: ptr(int64(len(file.text))),
		})
	}
	return out, nil
}

// portion answers with at most two lines of what follows a marker.
func (f *fakeLogs) portion(instance, name, marker, lines string) (any, *wire.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.files[instance] {
		if file.name != name {
			continue
		}
		if marker == "" {
			all := strings.SplitAfter(strings.TrimSuffix(file.text, "\n"), "\n")
			n, _ := strconv.Atoi(lines)
			return f.answer(strings.Join(all[max(len(all)-n, 0):], "")+"\n", len(file.text), false), nil
		}
		owner, at, _ := strings.Cut(marker, ":")
		offset, _ := strconv.Atoi(at)
		if marker != "0" && owner != f.owner {
			return nil, wire.NewError("InvalidParameterValue", "Invalid marker")
		}
		rest := strings.SplitAfterN(file.text[offset:], "\n", 3)
		more := len(rest) == 3 && rest[2] != ""
		text := strings.Join(rest[:min(len(rest), 2)], "")
		return f.answer(text, offset+len(text), more), nil
	}
	return nil, wire.NewError(rds.ErrDBLogFileNotFound, "no such file")
}

func (f *fakeLogs) answer(text string, next int, more bool) any {
	return &rds.DownloadDBLogFilePortionDetails{LogFileData: &text, Marker: ptr(fmt.Sprintf("%s:%d", f.owner, next)), AdditionalDataPending: &more}
}

// The file of the next hour follows that of an hour. After a failover the log of the new primary
// follows. A host that is silent is waited for.
func TestFollowDatabase(t *testing.T) {
	f := startFake(t, two)
	one, two := "error/postgresql.log.2026-11-22-01", "error/postgresql.log.2026-11-22-02"
	f.logs.set(func() {
		f.logs.owner = "m1"
		f.logs.files = map[string][]fakeLog{"orders": {{one, "a\nb\nc\n"}}}
	})
	reader, writer := io.Pipe()
	var said bytes.Buffer
	o := &options{screen: &screen.Screen{Stdout: writer, Stderr: &said}, every: time.Millisecond}
	api := fakeClient(t, f)
	l, err := ofDatabase(api, target{name: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(20*time.Second))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := l.tail(ctx, writer, 2)
		if err == nil {
			err = o.followDatabase(ctx, l, 1)
		}
		writer.Close()
		ended <- err
	}()
	expect := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(reader, got); err != nil || string(got) != want {
			t.Fatalf("followed by %q, want %q: %v", got, want, err)
		}
	}
	expect("b\nc\n")
	f.logs.set(func() {
		f.logs.files["orders"] = []fakeLog{{one, "a\nb\nc\nd\ne\nf\ng\nh\n"}, {two, "1\n2\n3\n"}}
	})
	expect("d\ne\nf\ng\nh\n1\n2\n3\n")
	f.logs.set(func() { f.logs.away = true })
	testkit.Eventually(t, 5*time.Second, func() error {
		f.logs.mu.Lock()
		defer f.logs.mu.Unlock()
		if f.logs.asked < 2 {
			return errors.New("the host was not asked again")
		}
		return nil
	})
	f.logs.set(func() {
		f.logs.away, f.logs.owner = false, "m2"
		f.logs.files["orders"] = []fakeLog{{two, "other 1\nother 2\n"}}
	})
	expect("other 2\n")
	f.logs.set(func() { f.logs.files["orders"] = []fakeLog{{two, "other 1\nother 2\nother 3\n"}} })
	expect("other 3\n")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Count(said.String(), "waiting") != 1 || !strings.Contains(said.String(), "of the new primary") {
		t.Errorf("said %q", said.String())
	}
}

// fakeClient is a client of the fake's home.
func fakeClient(t *testing.T, f *fake) *client.Client {
	t.Helper()
	c, err := client.FromHome(f.home)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

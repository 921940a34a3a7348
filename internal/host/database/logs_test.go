package database

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"howdah/internal/host/hostapi"
	"howdah/internal/host/logfile"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

func TestLogRetention(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		member, all map[string]string
		want        time.Duration
	}{
		"nothing said":     {want: 72 * time.Hour},
		"of the member":    {member: map[string]string{retentionParameter: "1440"}, all: map[string]string{retentionParameter: "2880"}, want: 24 * time.Hour},
		"of all members":   {all: map[string]string{retentionParameter: "2880"}, want: 48 * time.Hour},
		"damaged":          {member: map[string]string{retentionParameter: "soon"}, want: 72 * time.Hour},
		"nothing is kept":  {member: map[string]string{retentionParameter: "0"}, want: 72 * time.Hour},
		"less than that":   {member: map[string]string{retentionParameter: "-5"}, want: 72 * time.Hour},
		"more than counts": {member: map[string]string{retentionParameter: "1e300"}, want: 72 * time.Hour},
		"not a number":     {member: map[string]string{retentionParameter: "NaN"}, want: 72 * time.Hour},
	} {
		a := member.Assignment{Parameters: c.member, Cluster: patroni.Cluster{Parameters: c.all}}
		if got := logRetention(a); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestLogLimit(t *testing.T) {
	t.Parallel()
	for storage, want := range map[int64]int64{0: 4 << 30, 1 << 30: 64 << 20, 20 << 30: 1 << 30, 1 << 40: 4 << 30} {
		if got := logLimit(member.Assignment{Limits: member.Limits{StorageBytes: storage}}); got != want {
			t.Errorf("%d GiB: %d MiB", storage>>30, got>>20)
		}
	}
}

// What an assignment says is what the files are kept by, while the member runs and
// while it does not.
func TestLogsAreTrimmed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := logfile.Dir{Root: root, Sub: "log", Owner: "db-1.m1"}
	if err := os.Mkdir(filepath.Join(root, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	for hour := range 4 {
		path := filepath.Join(root, "log", fmt.Sprintf("postgresql.log.2026-11-22-%02d", hour))
		at := time.Now().Add(time.Duration(hour-4) * 20 * time.Hour)
		if err := errors.Join(os.WriteFile(path, []byte("x\n"), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	k := newLogKeeper(dir, slog.New(slog.DiscardHandler))
	k.every = time.Millisecond
	left := func(want ...string) error {
		files, err := dir.List()
		if err != nil {
			return err
		}
		var got []string
		for _, f := range files {
			got = append(got, f.Name[len(f.Name)-2:])
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("left are %v, want %v", got, want)
		}
		return nil
	}
	done := make(chan struct{})
	t.Cleanup(func() { <-done }) // after the test's context
	go func() { defer close(done); k.run(t.Context()) }()
	testkit.Eventually(t, 5*time.Second, func() error { return left("01", "02", "03") })
	k.aim(member.Assignment{Parameters: map[string]string{retentionParameter: "1440"}})
	testkit.Eventually(t, 5*time.Second, func() error { return left("03") })
}

// A control plane reads the log of a member from the host that it is on, and finds
// out from the host's record where.
func TestControlPlanesReadLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	w.Assign(w.Assignment("db-1", 1))
	id := "db-1.m1"
	dir := filepath.Join(w.Dir, "members", id, patroni.LogDir)
	name := "postgresql.log.2026-11-22-01"
	testkit.Eventually(t, 10*time.Second, func() error { return os.WriteFile(filepath.Join(dir, name), []byte("1\n2\n"), 0o600) })
	var listens string
	testkit.Eventually(t, 10*time.Second, func() error {
		host, err := state.Get[member.Host](t.Context(), w.Store, state.Host(hosttest.Name))
		listens = host.Value.Listen
		if err == nil && listens == "" {
			err = errors.New("the host says nothing")
		}
		return err
	})
	l := &hostapi.LogReader{Identity: w.Home.Issue(t, "howdah-serve")}
	files, err := l.Files(t.Context(), hosttest.Name, listens, id)
	if err != nil || len(files) != 1 || files[0].Name != name {
		t.Fatalf("listed %v: %v", files, err)
	}
	p, err := l.Portion(t.Context(), hosttest.Name, listens, hostapi.LogRequest{Member: id, File: name, Marker: "0", Lines: 1})
	if err != nil || string(p.Text) != "1\n" {
		t.Fatalf("read %q: %v", p.Text, err)
	}
	for _, other := range []string{"", "..", "../" + id, id + "/..", "db-9.m9", "."} {
		if files, err := l.Files(t.Context(), hosttest.Name, listens, other); err == nil && len(files) > 0 {
			t.Errorf("of %q: %v", other, files)
		}
	}
}

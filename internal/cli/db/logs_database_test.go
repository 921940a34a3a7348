package db

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/clitest"
	"howdah/internal/cli/screen"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// The file of the next hour follows that of an hour. After a failover the log of the new primary
// follows. A host that is silent is waited for.
func TestFollowDatabase(t *testing.T) {
	f := clitest.Start(t, clitest.Two)
	one, two := "error/postgresql.log.2026-11-22-01", "error/postgresql.log.2026-11-22-02"
	f.Logs.Set(func() {
		f.Logs.Owner = "m1"
		f.Logs.Files = map[string][]clitest.Log{"orders": {{Name: one, Text: "a\nb\nc\n"}}}
	})
	reader, writer := io.Pipe()
	var said bytes.Buffer
	o := &cli.Options{Screen: &screen.Screen{Stdout: writer, Stderr: &said}, Every: time.Millisecond}
	api := fakeClient(t, f)
	l, err := ofDatabase(api, cli.Target{Name: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(20*time.Second))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := l.tail(ctx, writer, 2)
		if err == nil {
			err = followDatabase(ctx, o, l, 1)
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
	f.Logs.Set(func() {
		f.Logs.Files["orders"] = []clitest.Log{{Name: one, Text: "a\nb\nc\nd\ne\nf\ng\nh\n"}, {Name: two, Text: "1\n2\n3\n"}}
	})
	expect("d\ne\nf\ng\nh\n1\n2\n3\n")
	f.Logs.Set(func() { f.Logs.Away = true })
	testkit.Eventually(t, 5*time.Second, func() error {
		f.Logs.Mu.Lock()
		defer f.Logs.Mu.Unlock()
		if f.Logs.Asked < 2 {
			return errors.New("the host was not asked again")
		}
		return nil
	})
	f.Logs.Set(func() {
		f.Logs.Away, f.Logs.Owner = false, "m2"
		f.Logs.Files["orders"] = []clitest.Log{{Name: two, Text: "other 1\nother 2\n"}}
	})
	expect("other 2\n")
	f.Logs.Set(func() { f.Logs.Files["orders"] = []clitest.Log{{Name: two, Text: "other 1\nother 2\nother 3\n"}} })
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
func fakeClient(t *testing.T, f *clitest.Fake) *client.Client {
	t.Helper()
	c, err := client.FromHome(f.Home)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

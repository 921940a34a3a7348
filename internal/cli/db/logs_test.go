package db

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/host/supervise"
)

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	if err := os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for lines, want := range map[int]string{0: "", 1: "three\n", 2: "two\nthree\n", 3: "one\ntwo\nthree\n", 99: "one\ntwo\nthree\n"} {
		var out bytes.Buffer
		o := &cli.Options{Screen: &screen.Screen{Stdout: &out}, Every: time.Millisecond}
		if err := tail(t.Context(), o, path, lines, false); err != nil || out.String() != want {
			t.Errorf("%d lines: %q, %v", lines, out.String(), err)
		}
	}
}

func TestTailOfALogThatWasPutAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	for name, text := range map[string]string{supervise.Aside(path, 1): "one\ntwo\n", path: "three\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for lines, want := range map[int]string{0: "", 1: "three\n", 2: "two\nthree\n", 9: "one\ntwo\nthree\n"} {
		var out bytes.Buffer
		o := &cli.Options{Screen: &screen.Screen{Stdout: &out}, Every: time.Millisecond}
		if err := tail(t.Context(), o, path, lines, false); err != nil || out.String() != want {
			t.Errorf("%d lines: %q, %v", lines, out.String(), err)
		}
	}
}

func TestTailFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	o := &cli.Options{Screen: &screen.Screen{Stdout: writer}, Every: time.Millisecond}
	go func() { ended <- tail(ctx, o, path, 10, true); writer.Close() }()
	if _, err := file.WriteString("later\n"); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	if n, err := reader.Read(text); err != nil || string(text[:n]) != "later\n" {
		t.Errorf("%q, %v", text[:n], err)
	}
	// The file is put aside. Its last line comes before the first line of the next file.
	if err := os.Rename(path, supervise.Aside(path, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("last\n"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("next\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := make([]byte, len("last\nnext\n"))
	if _, err := io.ReadFull(reader, all); err != nil || string(all) != "last\nnext\n" {
		t.Errorf("%q, %v", all, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNewest(t *testing.T) {
	dir := t.TempDir()
	if _, err := newest(filepath.Join(dir, "*.log")); err == nil {
		t.Error("no log is no error")
	}
	for i, name := range []string{"b.log", "a.log"} {
		path := filepath.Join(dir, name)
		at := time.Now().Add(time.Duration(i) * time.Minute)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := newest(filepath.Join(dir, "*.log")); err != nil || filepath.Base(path) != "a.log" {
		t.Errorf("the newest is %s: %v", path, err)
	}
}

func TestMemberToRead(t *testing.T) {
	d := &admin.Database{Name: "shop", Members: []admin.Member{
		{Name: "m1", Instance: "shop-1", Role: admin.RoleStandby}, {Name: "m2", Instance: "shop-2", Role: admin.RolePrimary},
		{Name: "m3", Instance: "shop-3", Role: admin.RoleStandby},
	}}
	for name, want := range map[string]string{"shop": "m2", "shop-1": "m1", "shop-2": "m2", "shop-3": "m3"} {
		if m := memberToRead(d, name); m.Name != want {
			t.Errorf("%s: %s, not %s", name, m.Name, want)
		}
	}
	d.Members = d.Members[:1]
	if m := memberToRead(d, "shop"); m.Name != "m1" {
		t.Errorf("without a primary: %s", m.Name)
	}
}

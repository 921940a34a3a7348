package place

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/repository/store"
)

func directory(t *testing.T) (store.Store, string) {
	t.Helper()
	dir := filepath.Join(plain(t), "r")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, ""), dir
}

// plain returns a temporary directory by a path without links.
func plain(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t *testing.T, dir, id string) store.Store {
	t.Helper()
	s, err := Open(member.Repository{Kind: "directory", Path: dir, ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhichDirectoriesMayBeRepositories(t *testing.T) {
	top := plain(t)
	for path, mode := range map[string]os.FileMode{"good": 0o700, "open": 0o777, "home/hosts/a": 0o700} {
		full := filepath.Join(top, path)
		if err := errors.Join(os.MkdirAll(full, 0o700), os.Chmod(full, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(top, "file"), nil, 0o600), os.Symlink("good", filepath.Join(top, "link")), os.Symlink("home", filepath.Join(top, "way"))); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(top, "home")
	for path, want := range map[string]string{
		"good": "", "lost": "make it", "open": "chmod", "file": "no directory", "link": "is a link", "way/hosts": "is a link",
		"home": "of its own", "home/hosts/a": "of its own", ".": "of its own", "good/../good": "whole path",
	} {
		full := filepath.Join(top, path)
		if strings.Contains(path, "..") {
			full = top + "/" + path
		}
		err := CheckPath(full, home, filepath.Join(top, "elsewhere"))
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrPath) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if err := CheckPath("good"); !errors.Is(err, ErrPath) {
		t.Errorf("a relative path: %v", err)
	}
	if !Apart("/a", "/ab") || Apart("/a", "/a/b") || Apart("/a/b", "/a") || Apart("/", "/x") {
		t.Error("what lies in another directory is taken for apart")
	}
}

// A place becomes a repository once, and only if nothing else is in it. What was interrupted is done
// again.
func TestHowAPlaceBecomesARepository(t *testing.T) {
	s, dir := directory(t)
	none := func(string) bool { return false }
	found := func(id, home string, known func(string) bool) error {
		return Found(t.Context(), s, store.Marker{ID: id, Home: home, Created: time.Now()}, known)
	}
	if err := found("repo-1", "h1", none); err != nil {
		t.Fatal(err)
	}
	if err := found("repo-1", "h1", none); err != nil {
		t.Errorf("once more: %v", err)
	}
	if err := found("repo-2", "h1", func(id string) bool { return id == "repo-1" }); !errors.Is(err, ErrTaken) {
		t.Errorf("a repository that is known: %v", err)
	}
	if err := found("repo-2", "h2", none); !errors.Is(err, ErrTaken) {
		t.Errorf("one of another home: %v", err)
	}
	if err := found("repo-2", "h1", none); err != nil {
		t.Errorf("what an interrupted attempt left: %v", err)
	}
	if m, err := store.ReadMarker(t.Context(), s); err != nil || m.ID != "repo-2" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := s.Put(t.Context(), "db-1/backup.info", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := found("repo-3", "h1", none); !errors.Is(err, ErrTaken) {
		t.Errorf("with backups: %v", err)
	}
	if err := s.Delete(t.Context(), store.MarkerKey); err != nil {
		t.Fatal(err)
	}
	if err := found("repo-3", "h1", none); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("files without a marker: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "db-1")); err != nil {
		t.Error(err)
	}
}

func TestProbes(t *testing.T) {
	s, dir := directory(t)
	p, err := Begin(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Answered(t.Context(), s, "zone-a"); !errors.Is(err, ErrElsewhere) {
		t.Errorf("before it answers: %v", err)
	}
	if err := errors.Join(p.Answer(t.Context(), open(t, dir, ""), "zone-a"), p.Answered(t.Context(), s, "zone-a")); err != nil {
		t.Error(err)
	}
	other, _ := directory(t)
	if err := p.Answer(t.Context(), other, "zone-b"); !errors.Is(err, ErrElsewhere) {
		t.Errorf("another directory: %v", err)
	}
	if beside, err := Beside(t.Context(), other); err != nil || beside != "" {
		t.Errorf("what is there by then: %q, %v", beside, err)
	}
	lie := p
	lie.Content = "other"
	if err := lie.Answer(t.Context(), s, "zone-b"); !errors.Is(err, ErrElsewhere) {
		t.Errorf("another content: %v", err)
	}
	for _, key := range []string{"db-1/backup.info", ProbePrefix + "a/b/control", "control", ProbePrefix + "x", ""} {
		if err := (Probe{Key: key, Content: p.Content}).Answer(t.Context(), s, "zone-b"); !errors.Is(err, ErrProbe) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if err := p.Answer(t.Context(), s, "../zone"); !errors.Is(err, ErrProbe) {
		t.Errorf("a path: %v", err)
	}
	if err := p.End(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if page, err := s.List(context.Background(), store.Query{Max: 10}); err != nil || len(page.Objects) != 0 {
		t.Errorf("it leaves %+v, %v", page, err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

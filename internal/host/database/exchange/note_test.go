package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/repository/store"
	"howdah/internal/testkit"
	"howdah/internal/testkit/s3test"
)

// notes are those on disk.
func (s *site) notes() (all []note) {
	s.Helper()
	paths, err := filepath.Glob(filepath.Join(s.server.config.Notes, "*.json"))
	s.must(err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		s.must(err)
		var n note
		s.must(json.Unmarshal(text, &n))
		all = append(all, n)
	}
	return all
}

// bucket is the bucket of the role, without its prefix.
func (s *site) bucket() *store.S3 {
	s.Helper()
	objects, err := store.OpenS3(store.S3Config{Endpoint: s.s3.Endpoint, Bucket: s3test.Bucket, CA: s.s3.CA, AccessKey: s3test.AccessKey, Secret: s3test.Secret})
	s.must(err)
	s.Cleanup(objects.Close)
	return objects
}

// isThere reports whether an upload is there, by a part of it.
func (s *site) isThere(key, id string) bool {
	s.Helper()
	_, err := s.bucket().Part(s.Context(), key, id, 9000, store.Body{Reader: strings.NewReader("x"), Length: 1})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		s.Fatal(err)
	}
	return err == nil
}

// An agent is killed in the middle of an export. The one that comes after it removes the parts from the
// bucket, and nothing of anybody else. What is under way there stays.
func TestWhatAKilledAgentLeft(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	s := newSite(t, s3, s3.Endpoint, nil)
	others, err := s.bucket().Begin(t.Context(), "own/x")
	s.must(err)
	begin := func(s *site, name string) caller {
		c := s.dial()
		c.ask(export, s3test.Bucket, "own/"+name, "")
		for range 20 << 20 / maxFrame {
			c.say(data, strings.Repeat("x", maxFrame))
		}
		return c
	}
	begin(s, "x")
	testkit.Eventually(t, 10*time.Second, func() error {
		if n := len(s.notes()); n != 1 {
			return fmt.Errorf("%d notes", n)
		}
		return nil
	})
	mine := s.notes()[0]
	if mine.File != "own/x" || mine.Member != "db-1.m1" || mine.Upload == others {
		t.Fatalf("noted is %+v", mine)
	}
	s.must(s.server.sweep(t.Context()))
	if !s.isThere("own/x", mine.Upload) {
		t.Fatal("what is under way was removed")
	}
	// Another process has the notes, and does not know of what is under way in this one.
	after := newSite(t, s3, s3.Endpoint, func(c *Config) { c.Notes = s.server.config.Notes })
	now := begin(after, "y")
	testkit.Eventually(t, 10*time.Second, func() error {
		if n := len(s.notes()); n != 2 {
			return fmt.Errorf("%d notes", n)
		}
		return nil
	})
	s.must(after.server.sweep(t.Context()))
	if s.isThere("own/x", mine.Upload) {
		t.Error("the parts are still there")
	}
	if !s.isThere("own/x", others) {
		t.Error("somebody else's upload is gone")
	}
	now.say(end, "")
	if _, last, text := now.hears(); last != end {
		t.Errorf("what was under way: %q %q", last, text)
	}
	if left := s.notes(); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
}

// What cannot be removed is tried again, and not for ever.
func TestPartsThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	refuses := errors.New("no role")
	s := newSite(t, s3, s3.Endpoint, func(c *Config) {
		ask := c.Ask
		c.Ask = func(ctx context.Context, of, feature string) (member.Bucket, error) {
			if refuses != nil {
				return member.Bucket{}, refuses
			}
			return ask(ctx, of, feature)
		}
	})
	id, err := s.bucket().Begin(t.Context(), "own/x")
	s.must(err)
	n := note{Member: "db-1.m1", Endpoint: s3.Endpoint, Bucket: s3test.Bucket, File: "own/x", Upload: id, Begun: time.Now()}
	write := func(n note) {
		s.server.begins(n)(false)
	}
	write(n)
	if err := s.server.sweep(t.Context()); !errors.Is(err, refuses) || len(s.notes()) != 1 {
		t.Errorf("without a role: %v", err)
	}
	refuses = nil
	elsewhere := n
	elsewhere.Bucket = "others"
	write(elsewhere)
	if err := s.server.sweep(t.Context()); !errors.Is(err, errNotAllowed) || len(s.notes()) != 1 || s.isThere("own/x", id) {
		t.Errorf("with the role, and of another bucket: %v", err)
	}
	s.must(os.WriteFile(filepath.Join(s.server.config.Notes, "half.json"), []byte(`{"mem`), 0o600))
	elsewhere.Begun = time.Now().Add(-8 * 24 * time.Hour)
	write(elsewhere)
	_ = s.server.sweep(t.Context())
	if left := s.notes(); len(left) != 1 || time.Since(left[0].Begun) > giveUpAfter {
		t.Errorf("left are %+v", left)
	}
}

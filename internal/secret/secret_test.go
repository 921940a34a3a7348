package secret

import (
	"strings"
	"testing"
	"time"

	"howdah/internal/spec"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func sealer(t *testing.T) *Sealer {
	t.Helper()
	s, err := NewSealer([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func made(t *testing.T) (Secret, string) {
	t.Helper()
	return New(spec.Scope{Account: "1", Region: "r"}, "db-1", false, "boss", 4, noon, sealer(t))
}

// A password has been made with a serial, and counts once the database has that.
func TestWhatIsCurrent(t *testing.T) {
	s, first := made(t)
	if got := s.Status(3, noon); got != Creating {
		t.Errorf("new: %s", got)
	}
	if got := s.Status(4, noon); got != Active {
		t.Errorf("taken: %s", got)
	}
	next, second := s.Rotate(7, noon.Add(time.Hour), sealer(t))
	for _, tt := range []struct {
		name    string
		taken   int64
		after   time.Duration
		status  string
		current string
	}{
		{"not taken yet", 4, time.Minute, Rotating, first},
		{"another one was taken meanwhile", 6, time.Minute, Rotating, first},
		{"not for long", 4, time.Hour, Impaired, first},
		{"taken", 7, time.Minute, Active, second},
		{"a later one", 9, time.Hour, Active, second},
	} {
		now := noon.Add(time.Hour + tt.after)
		if got := next.Status(tt.taken, now); got != tt.status {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.status)
		}
		as := next.Taken(tt.taken, now)
		if got, err := sealer(t).Open(as, as.Versions()[Current]); err != nil || got != tt.current {
			t.Errorf("%s: current is %q, %v", tt.name, got, err)
		}
		if tt.current == second && (as.Pending != nil || as.Previous == nil || as.Rotated != now || as.Due() != now.AddDate(0, 0, Days)) {
			t.Errorf("%s: %+v", tt.name, as)
		}
	}
	if s.Pending != nil || next.Newest() != 7 || s.Newest() != 4 || s.Due() != noon.AddDate(0, 0, Days) {
		t.Errorf("%+v, %+v", s, next)
	}
}

// What is sealed opens for nothing else: neither another database, user or version, nor
// another home.
func TestASealedPasswordIsBound(t *testing.T) {
	s, password := made(t)
	if len(password) != passwordLength || spec.CheckPassword(password) != nil || strings.Contains(string(s.Current.Sealed), password) {
		t.Errorf("%q", password)
	}
	for name, change := range map[string]func(*Secret){
		"another database": func(s *Secret) { s.Database = "db-2" },
		"another account":  func(s *Secret) { s.Account = "2" },
		"another user":     func(s *Secret) { s.User = "eve" },
		"another name":     func(s *Secret) { s.Name = "x" },
		"another version":  func(s *Secret) { s.Current.ID = "x" },
		"altered":          func(s *Secret) { s.Current.Sealed[20] ^= 1 },
	} {
		other, _ := made(t)
		change(&other)
		if got, err := sealer(t).Open(other, other.Current); err == nil {
			t.Errorf("%s opens it: %q", name, got)
		}
	}
	elsewhere, err := NewSealer([]byte(strings.Repeat("x", 32)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Open(s, s.Current); err == nil {
		t.Error("another home opens it")
	}
	if _, err := NewSealer([]byte("short")); err == nil {
		t.Error("a short key")
	}
	if value, err := sealer(t).Value(s, s.Current); err != nil || value != `{"username":"boss","password":"`+password+`"}` {
		t.Errorf("%s, %v", value, err)
	}
}

func TestNoTwoAreAlike(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		s, password := made(t)
		for _, text := range []string{password, s.ARN(), s.Current.ID} {
			if seen[text] {
				t.Fatalf("%s again", text)
			}
			seen[text] = true
		}
	}
	cluster, _ := New(spec.Scope{Account: "1", Region: "r"}, "cluster-1", true, "boss", 1, noon, sealer(t))
	if !strings.HasPrefix(cluster.ARN(), "arn:aws:secretsmanager:r:1:secret:rds!cluster-") {
		t.Error(cluster.ARN())
	}
}

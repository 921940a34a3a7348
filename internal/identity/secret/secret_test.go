package secret

import (
	"strings"
	"testing"
	"time"

	"howdah/internal/model/spec"
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

// A password is made with a serial. It counts once the database has exactly that serial: a later
// one belongs to another password.
func TestWhatIsCurrent(t *testing.T) {
	s, first := made(t)
	hour := noon.Add(time.Hour)
	next, second := s.Taken(4, noon).Rotate(7, "", hour, sealer(t))
	for _, tt := range []struct {
		name    string
		of      Secret
		at      Standing
		after   time.Duration
		status  string
		current string
	}{
		{"new", s, Standing{4, 0}, time.Minute, Creating, first},
		{"new for long", s, Standing{4, 0}, 9 * time.Hour, Creating, first},
		{"it has another one yet", s, Standing{4, 3}, time.Minute, Creating, first},
		{"taken", s, Standing{4, 4}, time.Minute, Active, first},
		{"known, and nobody says more", s.Taken(4, noon), Standing{4, 0}, 99 * time.Hour, Active, first},
		{"known, and the next primary lost it", s.Taken(4, noon), Standing{4, 3}, time.Minute, Rotating, first},
		{"known, and the home was restored", s.Taken(4, noon), Standing{6, 0}, time.Minute, Impaired, first},
		{"new, and the home was restored", s, Standing{6, 6}, time.Minute, Impaired, first},
		{"the database says more than the record", s.Taken(4, noon), Standing{4, 6}, time.Minute, Impaired, first},
		{"not taken yet", next, Standing{7, 4}, time.Minute, Rotating, first},
		{"nobody says that it was taken", next, Standing{7, 0}, time.Minute, Rotating, first},
		{"another one was taken meanwhile", next, Standing{7, 6}, time.Minute, Rotating, first},
		{"not for long", next, Standing{7, 4}, time.Hour, Impaired, first},
		{"the next taken", next, Standing{7, 7}, time.Minute, Active, second},
		{"the next taken late", next, Standing{7, 7}, time.Hour, Active, second},
		{"a later one, of which nobody knows", next, Standing{9, 9}, time.Minute, Impaired, first},
	} {
		now := hour.Add(tt.after)
		if got := tt.of.Status(tt.at, now); got != tt.status {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.status)
		}
		as := tt.of.Taken(tt.at.Taken, now)
		if got, err := sealer(t).Open(as, as.Versions()[Current]); err != nil || got != tt.current {
			t.Errorf("%s: current is %q, %v", tt.name, got, err)
		}
		if tt.current == second && (as.Pending != nil || as.Previous == nil || !as.Known || as.Rotated != now || as.Due() != now.AddDate(0, 0, Days)) {
			t.Errorf("%s: %+v", tt.name, as)
		}
	}
	if s.Pending != nil || s.Known || next.Newest() != 7 || s.Newest() != 4 || s.Due() != noon.AddDate(0, 0, Days) {
		t.Errorf("%+v, %+v", s, next)
	}
}

// A call may name the version that it makes. So the same call is known when it comes again.
func TestTheSameCallAgain(t *testing.T) {
	s, _ := made(t)
	token := strings.Repeat("t", minToken)
	next, _ := s.Rotate(5, token, noon, sealer(t))
	if !next.Made(token) || !next.Taken(5, noon).Made(token) || s.Made(token) || s.Made("") || next.Made("") {
		t.Errorf("%+v", next)
	}
	after, _ := next.Taken(5, noon).Rotate(6, "", noon, sealer(t))
	if after = after.Taken(6, noon); after.Made(token) || after.Previous.ID != token {
		t.Errorf("%+v", after)
	}
	for text, good := range map[string]bool{token: true, token[1:]: false, strings.Repeat("t", maxToken): true, strings.Repeat("t", maxToken+1): false, "": false} {
		if GoodToken(text) != good {
			t.Errorf("%q: %v", text, !good)
		}
	}
}

// A sealed password opens for nothing else: no other database, user or version, and no other home.
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

// One that moves to another database is the same secret, and all that it has is opened there alone.
func TestASecretMoves(t *testing.T) {
	s, password := made(t)
	moved := s.Move("db-2", 1, 1).Move("db-3", 1, 1)
	if moved.ARN() != s.ARN() || moved.Database != "db-3" {
		t.Errorf("%+v", moved)
	}
	if got, err := sealer(t).Open(moved, moved.Current); err != nil || got != password {
		t.Errorf("%q, %v", got, err)
	}
	next, second := moved.Rotate(9, "", noon, sealer(t))
	if got, err := sealer(t).Open(next.Move("db-4", 9, 9), *next.Pending); err != nil || got != second {
		t.Errorf("%q, %v", got, err)
	}
	moved.Sealed = "db-9"
	if _, err := sealer(t).Open(moved, moved.Current); err == nil {
		t.Error("one that was sealed for another database opens")
	}
}

// The database that takes the place may count on from a higher serial. Its password is known all the same.
func TestASecretMovesToAnotherSerial(t *testing.T) {
	s, _ := made(t)
	at := s.Current.Serial
	moved := s.Move("db-2", at, at+5)
	standing := Standing{Verifier: at + 5, Taken: at + 5}
	if moved.Overtaken(standing) || moved.Taken(at+5, noon).Status(standing, noon) != Active || s.Current.Serial != at {
		t.Errorf("%+v", moved)
	}
	if moved = s.Move("db-2", at+1, at+5); !moved.Overtaken(standing) {
		t.Error("a password that nobody knows is taken for the one that is known")
	}
	next, _ := s.Rotate(at+1, "", noon, sealer(t))
	moved = next.Move("db-2", at+1, at+5)
	if moved.Newest() != at+5 || moved.Current.Serial != at || next.Pending.Serial != at+1 {
		t.Errorf("pending: %+v", moved)
	}
	if moved = s.Leave(at+1).Move("db-2", at+1, at+5); moved.Left(at+4) || !moved.Left(at+5) {
		t.Errorf("left: %+v", moved)
	}
}

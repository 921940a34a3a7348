package secret

import (
	"slices"
	"testing"
	"time"
)

// A database may be given a password while it may still take another one. Each password that it may
// have stays known until it says which one it has.
func TestWhatTheDatabaseMayHaveIsKept(t *testing.T) {
	s, _ := made(t)
	s = s.Taken(4, noon)
	s, second := s.Rotate(5, "", noon, sealer(t))
	s, third := s.Rotate(7, "", noon, sealer(t)) // 6 was its owner's
	knows := func(s Secret, want ...string) {
		t.Helper()
		for _, password := range want {
			if !slices.ContainsFunc(s.All(), func(v Version) bool { got, err := sealer(t).Open(s, v); return err == nil && got == password }) {
				t.Errorf("%s is not known any more", password)
			}
		}
	}
	knows(s, second, third)
	has := s.Taken(5, noon)
	if got, err := sealer(t).Open(has, has.Current); err != nil || got != second || has.Pending == nil || has.Status(Standing{Verifier: 7, Taken: 5}, noon) != Rotating {
		t.Errorf("%s is current, %v, of %+v", got, err, has)
	}
	knows(has, second, third)
	has = s.Taken(7, noon)
	if got, err := sealer(t).Open(has, has.Current); err != nil || got != third || has.Pending != nil || len(has.Overruled) > 0 {
		t.Errorf("%s is current, %v, of %+v", got, err, has)
	}
	for n := range int64(50) {
		s, _ = s.Rotate(8+n, "", noon, sealer(t))
	}
	if len(s.Overruled) > mostOverruled {
		t.Errorf("%d are kept", len(s.Overruled))
	}
}

// The owner may choose another password in place of a secret's. The secret is of use until the
// database has that password, or a later one.
func TestASecretIsLeft(t *testing.T) {
	s, _ := made(t)
	for taken, left := range map[int64]bool{0: false, 4: false, 5: false, 6: true, 9: true} {
		if s.Left(taken) || s.Leave(6).Left(taken) != left {
			t.Errorf("with %d it is left: %v", taken, s.Leave(6).Left(taken))
		}
	}
	if again, _ := s.Leave(6).Rotate(7, "", noon.Add(time.Hour), sealer(t)); again.Until != 0 {
		t.Error("it is managed again, and would be left")
	}
}

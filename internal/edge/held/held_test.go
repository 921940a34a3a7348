package held

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"howdah/internal/identity/home"
)

// What is held is read as it was written, also by an agent that was never told of any; and
// only one may have the lock.
func TestARecord(t *testing.T) {
	r := Record{filepath.Join(t.TempDir(), "held-zone-a.json")}
	if got, err := r.Read(); err != nil || len(got) > 0 {
		t.Errorf("nothing was written: %v, %v", got, err)
	}
	want := []Place{{"db-1", "m1", "10.0.0.1:5432"}, {"db-2", "m3", "10.0.0.2:5432"}}
	for _, places := range [][]Place{want, {}, want} {
		if err := r.Write(places); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Read(); err != nil || !slices.Equal(got, places) {
			t.Errorf("%v, %v, want %v", got, err, places)
		}
	}
	lock, err := r.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lock(); !errors.Is(err, home.ErrLocked) {
		t.Errorf("two have the lock: %v", err)
	}
	lock.Release()
	again, err := r.Lock()
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
	if err := os.WriteFile(r.path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Read(); err == nil {
		t.Errorf("half a record is read as %v", got)
	}
}

package agent

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"howdah/internal/model/member"
)

// sealedText is an assignment as a newer control plane writes it.
func sealedText(t *testing.T, a member.Assignment) string {
	t.Helper()
	a.Seal = "sealed"
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), "{", `{"of_a_newer_release":"<1>",`, 1)
}

// A member that is told the same under a seal has nothing to do. The text is kept as it is, with
// what this release does not know.
func TestASealIsKept(t *testing.T) {
	w := newWorld(t, waits)
	a, _, err := w.open(t.Context())
	w.must(err)
	told := w.assignment("db-sealed", 1)
	r := unstarted(a, told.ID)
	r.accept(Order{Assignment: told})
	if last, err := a.Remembered(told.ID); err != nil || last.Told() != nil {
		t.Errorf("without a seal it shows %s, %v", last.Told(), err)
	}
	r.rendered = 1
	text := sealedText(t, told)
	sealed, err := readOrder([]byte(text), told.ID)
	w.must(err)
	r.accept(sealed)
	if r.rendered != 1 || r.Want.Seal != "sealed" {
		t.Errorf("the configuration is to be brought again: %d, %+v", r.rendered, r.Want)
	}
	if last, err := a.Remembered(told.ID); err != nil || string(last.Told()) != text {
		t.Errorf("kept is %s, %v", last.Told(), err)
	}
}

// A restored home is told what the host was told, as it was.
func TestASealIsToldBack(t *testing.T) {
	t.Parallel()
	h, id, _ := lying(t, member.Report{})
	for range 2 { // what is known of its data since comes with it, too
		last, err := h.agent.Remembered(id)
		if err != nil {
			t.Fatal(err)
		}
		last.Generation++
		text := sealedText(t, last.Assignment)
		if err := os.WriteFile(h.agent.assignedPath(id), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, ok := h.copyOf(t.Context(), id); !ok || string(c.Told) != text || c.Assignment.Generation != last.Generation || c.System == "" {
			t.Errorf("it says %+v", c)
		}
	}
}

package agent

import (
	"encoding/json"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/testkit/hosttest"
)

// A member that is told the same under a seal has nothing to do. The text is kept as it is, with
// what this release does not know.
func TestASealIsKept(t *testing.T) {
	d := newDorm(t)
	a := d.open()
	told := d.Assignment("db-sealed", 1)
	r := NewMember(a, told.ID)
	r.accept(Order{Assignment: told})
	if last, err := a.Remembered(told.ID); err != nil || last.Told() != nil {
		t.Errorf("without a seal it shows %s, %v", last.Told(), err)
	}
	text := hosttest.SealedText(t, told)
	sealed, err := readOrder([]byte(text), told.ID)
	d.Must(err)
	r.accept(sealed)
	if d.kind.heard("told 1, changed: true") != 1 || d.kind.heard("told 1, changed: false") != 1 || r.Want.Seal != "sealed" {
		t.Errorf("it says something else now: %q, %+v", d.kind.said, r.Want)
	}
	if last, err := a.Remembered(told.ID); err != nil || string(last.Told()) != text {
		t.Errorf("kept is %s, %v", last.Told(), err)
	}
}

func TestSameContent(t *testing.T) {
	full := member.Assignment{ID: "x", Generation: 3, Parameters: map[string]string{"a": "b"}, Allow: []string{}}
	other := full
	other.RequireTLS = true
	everyone := full
	everyone.Allow = nil
	var kept member.Assignment
	text, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	if !sameContent(full, kept) || sameContent(full, other) || sameContent(full, everyone) {
		t.Errorf("kept %v, another field %v, everyone %v", sameContent(full, kept), sameContent(full, other), sameContent(full, everyone))
	}
}

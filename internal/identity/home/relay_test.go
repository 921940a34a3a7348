package home

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRelayIsRemembered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	relay := SMTP{Relay: "mail.example.org:25", From: "a@example.org", User: "u", PasswordFile: "/p"}
	for _, step := range []struct {
		asked *SMTP
		want  *SMTP
	}{{nil, nil}, {&relay, &relay}, {nil, &relay}, {&SMTP{}, nil}, {nil, nil}} {
		if _, err := Ensure(dir, Options{SMTP: step.asked, Listen: "127.0.0.1:1"}); err != nil {
			t.Fatal(err)
		}
		h, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, h.SMTP); diff != "" {
			t.Errorf("asked for %+v: %s", step.asked, diff)
		}
	}
	fresh, err := Ensure(filepath.Join(t.TempDir(), "home"), Options{SMTP: &relay})
	if err != nil || *fresh.SMTP != relay {
		t.Errorf("a new home: %+v, %v", fresh.SMTP, err)
	}
}

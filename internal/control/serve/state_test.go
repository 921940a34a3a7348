package serve

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"howdah/internal/identity/home"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

// A home whose state is gone does not begin with an empty one, because hosts would believe it.
func TestAHomeWhoseStateIsGone(t *testing.T) {
	t.Parallel()
	h, err := home.Ensure(filepath.Join(hometest.Dir(t), "home"), home.Options{Listen: testkit.FreeAddr(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Begin(); err != nil {
		t.Fatal(err)
	}
	err = Run(t.Context(), Config{Home: h, Name: "s1", Address: "127.0.0.1", Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, home.ErrNoState) {
		t.Errorf("%v", err)
	}
}

package rig

import (
	"errors"
	"testing"

	"howdah/internal/identity/home"
)

// Rigs run beside each other, with homes in different parts of the loopback network.
func TestANetworkIsOneRigsOwn(t *testing.T) {
	r := &Rig{Options: Options{Dir: t.TempDir()}}
	if err := r.makeHome(home.Options{Disposable: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := home.Claim(r.Home.Network); !errors.Is(err, home.ErrLocked) {
		t.Errorf("another home may have the network of a rig: %v", err)
	}
	r.release()
	release, err := home.Claim(r.Home.Network)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

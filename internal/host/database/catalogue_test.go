package database

import (
	"fmt"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/param"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// catalogues waits until the parameters of all installed versions are in the state.
func (w *world) catalogues() {
	w.Helper()
	installs, err := postgres.Installed()
	w.Must(err)
	for _, install := range installs {
		testkit.Eventually(w.T, time.Minute, func() error {
			c, err := state.Get[param.Catalogue](w.Context(), w.Store, state.Catalogue(install.Full))
			if err == nil && (c.Value.Version != install.Full || len(c.Value.Parameters) < 340 || len(c.Value.Extensions) == 0) {
				return fmt.Errorf("%d parameters of %s, extensions %q", len(c.Value.Parameters), c.Value.Version, c.Value.Extensions)
			}
			return err
		})
	}
}

// Package upkeep is what databases need although nobody asks for it at that moment: what waits for
// the maintenance window, newer minor versions, certificates of newer authorities, passwords that
// are due, and addresses to be given back. Users see of it what is pending, and may have that done
// at once. Control planes do it: the one that leads runs the rounds of a House.
//
// Upkeep changes records as the Modify actions do, by the same code. It does nothing to databases:
// reconcile does, afterwards.
package upkeep

import (
	"log/slog"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
)

// Upkeep is that of all databases of a home. All fields are required.
type Upkeep struct {
	*database.Source
	Log *slog.Logger
}

// Actions are those on maintenance that waits.
func (u *Upkeep) Actions() map[string]front.Action {
	return map[string]front.Action{
		"ApplyPendingMaintenanceAction":     front.On(u.applyPendingMaintenanceAction),
		"DescribePendingMaintenanceActions": front.On(u.describePendingMaintenanceActions),
	}
}

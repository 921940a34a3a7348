package db

import (
	"fmt"
	"time"

	"howdah/internal/admin"
	"howdah/internal/cli"
)

// BackupsLine says what the backups of a database are good for, or "". It promises nothing that was
// not seen.
func BackupsLine(b *admin.DatabaseBackups) string {
	if b == nil {
		return ""
	}
	restorable := "no moment restorable for sure"
	switch {
	case b.Retention == 0:
		restorable = fmt.Sprintf("%d, none automated", b.Count)
	case !b.Restorable.IsZero():
		restorable = "restorable until " + b.Restorable.UTC().Format(time.DateTime) + "Z"
	}
	proved := cli.Yes(b.Count > 0, "not proved yet")
	if !b.Proved.IsZero() {
		proved = "proved " + b.Proved.UTC().Format(time.DateTime) + "Z"
	}
	return cli.JoinTexts(", ", restorable, proved, cli.Yes(b.Failed != "", "the newest drill failed"))
}

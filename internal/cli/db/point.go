package db

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
)

// pointFlags say what to restore.
type pointFlags struct {
	to, lsn, before, snapshot string
	latest                    bool
}

// pointNames are the flags of a moment.
var pointNames = []string{"to", "latest", "lsn", "before-transaction"}

func (f *pointFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "a moment with its zone, to the microsecond: 2026-11-24T16:50:00.123456Z")
	flags.StringVar(&f.lsn, "lsn", "", "a position of WAL, such as 16/B374D848: everything up to it")
	flags.StringVar(&f.before, "before-transaction", "", "the id of a transaction: everything before it ended")
	flags.StringVar(&f.snapshot, "snapshot", "", "the data of a snapshot")
}

// point returns what was asked for. one of the flags must be given.
func (f *pointFlags) point(cmd *cobra.Command) (admin.RestorePoint, error) {
	all := append([]string{"snapshot"}, pointNames...)
	if cmd.Flags().Lookup("latest") == nil {
		all = []string{"snapshot", "to", "lsn", "before-transaction"}
	}
	if err := cli.Exclusive(cmd, all...); err != nil {
		return admin.RestorePoint{}, err
	}
	if !anyChanged(cmd, all) {
		return admin.RestorePoint{}, fmt.Errorf("say which moment: --%s: %w", strings.Join(all, ", --"), cli.ErrUsage)
	}
	at := admin.RestorePoint{Snapshot: f.snapshot, Latest: f.latest, LSN: f.lsn, Before: f.before}
	if cmd.Flags().Changed("to") {
		moment, err := parseMoment(f.to)
		if err != nil {
			return at, err
		}
		at.Time = &moment
	}
	return at, nil
}

// parseMoment reads a moment as people write it, and as Howdah prints it. A time without a zone could
// be either of two.
func parseMoment(text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00"} {
		if t, err := time.Parse(form, strings.TrimSpace(text)); err == nil {
			if !t.Equal(t.Truncate(time.Microsecond)) {
				return t, fmt.Errorf("--to: %q is finer than a microsecond: %w", text, cli.ErrUsage)
			}
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("--to: %q is no moment with its zone, such as 2026-11-24T16:50:00Z or 2026-11-24T17:50:00.123456+01:00: %w", text, cli.ErrUsage)
}

// momentText is a moment to the microsecond.
func momentText(t time.Time) string {
	return strings.TrimSuffix(t.UTC().Format("2006-01-02 15:04:05.999999"), ".") + "Z"
}

// targetText says what is restored.
func targetText(p admin.RestorePlan) string {
	switch {
	case p.Latest:
		return "all that is restorable"
	case p.LSN != "":
		return "everything until the WAL position " + p.LSN
	case p.Before != "":
		return "everything before the transaction " + p.Before
	}
	return "everything committed by " + momentText(p.Until)
}

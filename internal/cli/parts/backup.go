package parts

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/state/backup"
)

// BackupFlags are the flags of commands that have backups taken by schedule.
type BackupFlags struct {
	dir   string
	every time.Duration
	keep  int
}

// Add gives a command the flags.
func (f *BackupFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "home-backup", "", "directory to take backups of the home into, by schedule; best on another machine's disk")
	flags.DurationVar(&f.every, "home-backup-every", time.Hour, "how often a backup of the home is taken")
	flags.IntVar(&f.keep, "home-backup-keep", 48, "how many backups of the home are kept")
}

// Schedule returns what the flags ask for, or nil.
func (f *BackupFlags) Schedule() (*backup.Schedule, error) {
	switch {
	case f.dir == "":
		return nil, nil
	case !filepath.IsAbs(f.dir):
		return nil, fmt.Errorf("--home-backup is an absolute path: %w", cli.ErrUsage)
	case f.every < time.Second || f.keep < 1:
		return nil, fmt.Errorf("--home-backup-every is at least 1s, --home-backup-keep at least 1: %w", cli.ErrUsage)
	}
	return &backup.Schedule{Dir: f.dir, Every: f.every, Keep: f.keep}, nil
}

// Args returns the arguments for the control plane that `howdah up` runs.
func (f *BackupFlags) Args() []string {
	if f.dir == "" {
		return nil
	}
	return []string{"--home-backup", f.dir, "--home-backup-every", f.every.String(), "--home-backup-keep", fmt.Sprint(f.keep)}
}

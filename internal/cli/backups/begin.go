package backups

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newBackupNow(o *cli.Options) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use: "now DB", Short: "Make a backup of a database now", Args: cli.OneName, ValidArgsFunction: o.CompleteNames,
		Long: "Makes a backup beside the daily ones. It is kept as long as they are. What is to be kept longer is a snapshot: " +
			"`aws rds create-db-snapshot`.",
		Example: "  howdah backup now orders\n  howdah backup now orders --wait",
		RunE: func(cmd *cobra.Command, names []string) error {
			begun, err := begin(cmd, o, admin.VerbBackupNow, "backup", names[0])
			if err != nil {
				return err
			}
			if !wait {
				return o.Print(begun, func() error { o.Say("A backup of %s is being made: %s", begun.Database, watch(o, begun)); return nil })
			}
			return finishBackup(cmd, o, begun)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is made")
	return cmd
}

// finishBackup waits for a backup, and says what it took.
func finishBackup(cmd *cobra.Command, o *cli.Options, begun admin.BackupBegun) error {
	if err := await(cmd, o, begun, "the backup of "+begun.Database); err != nil {
		return err
	}
	out, err := ask[admin.BackupsAnswer](cmd, o, admin.VerbBackups, admin.BackupsRequest{Name: begun.ResourceID})
	if err != nil {
		return err
	}
	for _, b := range out.Backups {
		if b.Operation == begun.Operation {
			return o.Print(b, func() error {
				o.Say("%s is backed up in %s: %s, %s for %s, %s", b.Database, b.Repository, kindText(b.Kind), screen.Bytes(b.Stored), screen.Bytes(b.Size), b.Label)
				return nil
			})
		}
	}
	return fmt.Errorf("the backup of %s was removed meanwhile: see %s", begun.Database, o.Pasteable("howdah backup list "+begun.Database))
}

// begin begins an operation about the backups of a database. The id is chosen here, so that a call
// that is sent again begins nothing more.
func begin(cmd *cobra.Command, o *cli.Options, verb, prefix, name string) (admin.BackupBegun, error) {
	return ask[admin.BackupBegun](cmd, o, verb, admin.BackupBeginRequest{Name: name, ID: operationID(prefix, name, o.Now())})
}

// operationID returns an id that shows people what the operation is about, and is no other's.
func operationID(prefix, name string, now time.Time) string {
	const most = 40
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return prefix + "-" + plain[:min(len(plain), most)] + "-" + strconv.FormatInt(now.UnixNano(), 36)
}

// watch returns the command that shows how far an operation is.
func watch(o *cli.Options, begun admin.BackupBegun) string {
	return o.Pasteable("howdah operations show " + begun.Operation + " --watch")
}

// await waits until an operation is done, as long as that takes, and shows its steps. It fails if the
// operation does. Whoever waits no longer is told how to go on watching.
func await(cmd *cobra.Command, o *cli.Options, begun admin.BackupBegun, what string) error {
	_, err := awaitUntil(cmd, o, begun, what, func(admin.Operation) bool { return false })
	return err
}

// awaitUntil is await, but until an operation is as far as it is waited for, or done.
func awaitUntil(cmd *cobra.Command, o *cli.Options, begun admin.BackupBegun, what string, until func(admin.Operation) bool) (now admin.Operation, err error) {
	api, err := o.API(cmd)
	if err != nil {
		return now, err
	}
	p := o.Screen.Begin(o.Now)
	defer p.End()
	pace := far{now: o.Now}
	slow := *o
	slow.Every *= 5 // it may take hours
	err = slow.Poll(cmd.Context(), what, func() (bool, error) {
		var out admin.OperationsAnswer
		if err := api.Admin(cmd.Context(), admin.VerbOperations, admin.OperationsRequest{ID: begun.Operation}, &out); err != nil {
			return false, err
		}
		if len(out.Operations) != 1 {
			return false, fmt.Errorf("%d operations have the id %s", len(out.Operations), begun.Operation)
		}
		now = out.Operations[0]
		if !now.Ended && until(now) {
			return true, nil
		}
		if !now.Ended {
			p.Step(stepText(now), now.StepBegan)
			p.Far(pace.text(now))
			if now.Trouble != "" {
				p.Note(now.Trouble)
			}
		}
		return now.Ended, nil
	})
	switch {
	case cmd.Context().Err() != nil:
		return now, fmt.Errorf("no longer waiting for %s: it goes on: %s", what, watch(o, begun))
	case err != nil:
		return now, err
	case now.Ended && now.State != "done":
		word := map[string]string{"failed": "failed", "cancelled": "was cancelled"}[now.State]
		return now, fmt.Errorf("%s %s: %s: see %s", what, word, now.Reason, o.Pasteable("howdah operations show "+begun.Operation))
	}
	return now, nil
}

// stepText says in words what an operation does.
func stepText(p admin.Operation) string {
	switch p.Step {
	case "":
		return "waiting to begin"
	case "pick":
		return "choosing the backup and a host"
	case "try":
		return tryText(p.Unit)
	case "conclude":
		return "recording what was found"
	case "choose":
		return "choosing where the backup is made"
	case "run":
		return "making the backup"
	case "record":
		return "recording the backup"
	case "site":
		return "choosing the host that copies"
	case "copy":
		return "copying"
	case "show":
		return "recording the copy"
	case "place":
		return "choosing a host"
	case "make":
		return makeText(p.Unit)
	}
	return p.Step
}

// makeText says what a host does that makes a download ready, by what it counts.
func makeText(unit string) string {
	switch {
	case strings.HasSuffix(unit, "dumped"):
		return "dumping"
	case unit == "" || strings.HasPrefix(unit, "bytes of"):
		return tryText(unit)
	}
	return "making it ready to be fetched"
}

// tryText says what a host does, by what it counts.
func tryText(unit string) string {
	switch {
	case unit == "":
		return "asking a host"
	case strings.HasSuffix(unit, " of files"):
		return "restoring files"
	case strings.HasSuffix(unit, " of wal"):
		return "replaying WAL"
	}
	return "looking whether all is there"
}

// far tells how far an operation is, and how long its bytes will take. It goes by what it has seen,
// as nobody notes when a unit began.
type far struct {
	now   func() time.Time
	unit  string
	since time.Time
	first int64
}

// text returns how many bytes are done, of how many, and the time left. It is "" for other units.
func (f *far) text(p admin.Operation) string {
	if p.Unit != f.unit || f.since.IsZero() || p.Done < f.first {
		f.unit, f.since, f.first = p.Unit, f.now(), p.Done
	}
	if !strings.HasPrefix(p.Unit, "bytes") {
		return ""
	}
	if p.Of <= 0 {
		return screen.Bytes(p.Done)
	}
	text := fmt.Sprintf("%s of %s (%d %%)", screen.Bytes(p.Done), screen.Bytes(p.Of), 100*p.Done/p.Of)
	past, done := f.now().Sub(f.since), p.Done-f.first
	if past <= 0 || done <= 0 || p.Done >= p.Of {
		return text
	}
	return text + ", about " + screen.Span(time.Duration(float64(past)*float64(p.Of-p.Done)/float64(done))) + " left"
}

package backups

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newBackupDrill(o *cli.Options) *cobra.Command {
	var noWait bool
	cmd := &cobra.Command{
		Use: "drill DB", Short: "Try the newest backup: restore it, look at all of it, and throw it away", Args: cli.OneName, ValidArgsFunction: o.CompleteNames,
		Long: "Restores the newest backup of a database, and the WAL after it, to a place of its own on a host, starts a server on it, reads every " +
			"page, table and index, and throws all away. It prints what was measured: how long a restore takes (RTO), and how much would have " +
			"been lost (RPO). The database goes on meanwhile. The exit code is 3 if something is wrong with the backup. Ctrl-C leaves the drill going on.",
		Example: "  howdah backup drill orders\n  howdah backup drill orders -o json",
		RunE: func(cmd *cobra.Command, names []string) error {
			begun, err := begin(cmd, o, admin.VerbBackupDrill, "drill", names[0])
			if err != nil {
				return err
			}
			if noWait {
				return o.Print(begun, func() error {
					o.Say("The newest backup of %s is being tried: %s", begun.Database, o.Watch(begun.Operation))
					return nil
				})
			}
			return finishDrill(cmd, o, begun)
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the drill has begun")
	return cmd
}

// finishDrill waits for a drill, and says what it measured.
func finishDrill(cmd *cobra.Command, o *cli.Options, begun admin.BackupBegun) error {
	if err := await(cmd, o, begun, "the drill of "+begun.Database); err != nil {
		return err
	}
	out, err := cli.AskAdmin[admin.DrillsAnswer](cmd, o, admin.VerbDrills, admin.BackupsRequest{Name: begun.ResourceID})
	if err != nil {
		return err
	}
	for _, d := range out.Drills {
		if d.Operation != begun.Operation {
			continue
		}
		if err := o.Print(d, func() error { return resultText(o, d) }); err != nil {
			return err
		}
		if d.Failed != "" {
			return fmt.Errorf("the newest backup of %s did not stand the drill: see %s: %w", d.Database, o.Pasteable("howdah backup show "+d.Database), cli.ErrWrong)
		}
		return nil
	}
	return fmt.Errorf("a later drill of %s has taken the place of this one: see %s", begun.Database, o.Pasteable("howdah backup show "+begun.Database))
}

func resultText(o *cli.Options, d admin.Drill) error {
	if d.Failed == "" {
		o.Say("%s the newest backup of %s was restored on %s, looked at, and thrown away.", o.Screen.Paint(screen.Green, "proved:"), d.Database, d.Host)
	} else {
		o.Say("%s the newest backup of %s: %s", o.Screen.Paint(screen.Red, "failed:"), d.Database, d.Failed)
	}
	return drillText(o, d)
}

// drillText writes what a drill measured, and nothing that it did not measure.
func drillText(o *cli.Options, d admin.Drill) error {
	lines := [][2]string{{"backup", cli.JoinTexts(", ", d.Label+" in repository "+d.Repository, cli.Yes(d.Bytes > 0, screen.Bytes(d.Bytes)))}}
	if d.Restored {
		lines = append(lines,
			[2]string{"RTO", fmt.Sprintf("%s from nothing until it would take clients: files %s, replay of WAL %s", span(d.RTO), span(d.Files), span(d.Replay))},
			[2]string{"RPO", rpoText(d)},
			[2]string{"promised", promisedText(d)},
			[2]string{"checked", checkedText(d)},
		)
	} else {
		lines = append(lines, [2]string{"measured", "nothing, as it could not be restored"})
	}
	for n, text := range d.Unlimited {
		lines = append(lines, [2]string{cli.Yes(n == 0, "not limited"), text})
	}
	for n, text := range d.Damaged {
		lines = append(lines, [2]string{cli.Yes(n == 0, "damaged"), text})
	}
	if more := d.Faults - len(d.Damaged); more > 0 && len(d.Damaged) > 0 {
		lines = append(lines, [2]string{"", fmt.Sprintf("and %d more", more)})
	}
	return facts(o, lines)
}

// rpoText says how much would have been lost, by the newest commit that was there.
func rpoText(d admin.Drill) string {
	if d.RPO == nil {
		return "not measured: no commit after the backup was replayed"
	}
	return fmt.Sprintf("%s: the newest commit is of %s, and the drill began at %s", span(*d.RPO), at(d.Newest), at(d.Began))
}

func rpoShort(d admin.Drill) string {
	if d.RPO == nil {
		return ""
	}
	return "RPO " + span(*d.RPO)
}

func promisedText(d admin.Drill) string {
	switch {
	case d.Promised.IsZero():
		return "nothing, when the drill began"
	case d.Newest.Before(d.Promised):
		return "restorable until " + at(d.Promised) + "; it was not looked at whether that holds"
	}
	return "restorable until " + at(d.Promised) + ", which holds"
}

func checkedText(d admin.Drill) string {
	text := fmt.Sprintf("%s, %s and %s in %s", number(d.Databases, "database"), number(d.Tables, "table"), number(d.Indexes, "index"), span(d.Check))
	if d.Faults == 0 {
		return text + ": nothing is damaged"
	}
	return text
}

func number(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what == "index":
		what = "indexe"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func span(seconds float64) string { return screen.Span(time.Duration(seconds * float64(time.Second))) }

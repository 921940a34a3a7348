package backups

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/db"
	"howdah/internal/cli/screen"
)

func newBackup(o *cli.Options) *cobra.Command {
	group := cli.Group("backup", "List, make and try backups of databases",
		"Backups of databases are in repositories. The automated ones are made each day, and are kept for the retention period; snapshots "+
			"are kept until they are deleted. A backup counts only when it was restored: that is what drills do, each week and when you ask for one.",
		newBackupList(o), newBackupShow(o), newBackupNow(o), newBackupDrill(o), newBackupMetrics(o))
	group.Aliases = []string{"backups"}
	return group
}

func newBackupList(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "list [DB]", Short: "List backups, of all databases or one, also of deleted ones", Args: cli.Args(cobra.MaximumNArgs(1)), Aliases: []string{"ls"},
		ValidArgsFunction: o.CompleteNames, Example: "  howdah backup list\n  howdah backup list orders -o json",
		RunE: func(cmd *cobra.Command, names []string) error {
			out, err := cli.AskAdmin[admin.BackupsAnswer](cmd, o, admin.VerbBackups, admin.BackupsRequest{Name: strings.Join(names, "")})
			if err != nil {
				return err
			}
			return o.Print(out.Backups, func() error { return backupsTable(o, out.Backups) })
		},
	}
}

func backupsTable(o *cli.Options, all []admin.Backup) error {
	if len(all) == 0 {
		o.Say("No backups.")
		return nil
	}
	var t screen.Table
	t.Head("DATABASE", "TAKEN", "KIND", "SIZE", "STORED", "AUTOMATED", "SNAPSHOTS", "PROVED", "FROM", "REPOSITORY", "LABEL", "NOTE")
	for _, b := range all {
		t.Row(b.Database+cli.Yes(b.Deleted, " (deleted)"), at(b.Taken), kindText(b.Kind), screen.Bytes(b.Size), screen.Bytes(b.Stored),
			cli.Yes(b.Automated, "yes"), strings.Join(b.Snapshots, ", "), at(b.Proved), fromText(b), b.Repository, b.Label, noteCell(b))
	}
	return t.Write(o.Screen.Stdout, o.Screen.Color())
}

// fromText says whose files were copied; "": nobody noted it.
func fromText(b admin.Backup) string {
	if b.Member == "" {
		return ""
	}
	if b.Standby {
		return b.Member + " (standby)"
	}
	return b.Member + " (primary)"
}

func kindText(kind string) string {
	if kind == "incr" {
		return "incremental"
	}
	return kind
}

// noteCell says what limits the use of a backup.
func noteCell(b admin.Backup) screen.Cell {
	switch {
	case b.Damaged != "":
		return screen.Cell{Text: "damaged", Style: screen.Red}
	case b.Doubt:
		return screen.Cell{Text: "in doubt: one that needs it is damaged", Style: screen.Yellow}
	case b.Only:
		return screen.Cell{Text: "of this moment only"}
	}
	return screen.Cell{}
}

// at returns a moment as text, or "" for none.
func at(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}
	return moment.UTC().Format(time.DateTime) + "Z"
}

func newBackupShow(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "show DB", Short: "Show how the backups of a database are: what can be restored, the archive, the newest drill", Args: cli.OneName,
		ValidArgsFunction: o.CompleteNames, Example: "  howdah backup show orders",
		RunE: func(cmd *cobra.Command, names []string) error {
			out, err := cli.AskAdmin[admin.BackupStatus](cmd, o, admin.VerbBackupShow, admin.BackupsRequest{Name: names[0]})
			if err != nil {
				return err
			}
			return o.Print(out, func() error { return showText(o, out) })
		},
	}
}

func showText(o *cli.Options, s admin.BackupStatus) error {
	o.Say("%s", o.Screen.Paint(screen.Bold, s.Database))
	err := facts(o, [][2]string{
		{"restorable", restorableText(s)},
		{"repository", cli.JoinTexts(", ", orNone(s.Repository), number(s.Short.Count, "backup")+" with "+screen.Bytes(s.Stored))},
		{"retention", retentionText(s.Short.Retention)},
		{"archive", archiveText(s)},
		{"newest backup", newestText(s.Newest)},
		{"being made", withShow(s.Making)},
		{"next window", at(s.Window)},
		{"newest drill", drillLine(s.Drill)},
		{"being tried", withShow(s.Drilling)},
	})
	if err != nil {
		return err
	}
	if s.Drill != nil && s.Drill.Failed != "" {
		o.Say("  what the drill found:")
		if err := drillText(o, *s.Drill); err != nil {
			return err
		}
	}
	db.ProblemsText(o, s.Problems, "  ")
	return nil
}

// facts writes lines of name and value, without those that have no value.
func facts(o *cli.Options, lines [][2]string) error {
	t := screen.Table{Indent: "  "}
	for _, line := range lines {
		if line[1] != "" {
			t.Row(screen.Cell{Text: line[0], Style: screen.Dim}, line[1])
		}
	}
	return t.Write(o.Screen.Stdout, o.Screen.Color())
}

// restorableText says which moments can be restored. It promises nothing that was not seen.
func restorableText(s admin.BackupStatus) string {
	switch {
	case s.Short.Retention == 0:
		return "no moments, as automated backups are off; snapshots can be restored"
	case s.Short.Restorable.IsZero():
		return "no moment for sure now"
	}
	return fmt.Sprintf("from %s until %s (%s ago)", at(s.Short.Earliest), at(s.Short.Restorable), screen.Span(s.Time.Sub(s.Short.Restorable)))
}

func retentionText(days int) string {
	if days == 0 {
		return "automated backups are off"
	}
	return number(days, "day")
}

func archiveText(s admin.BackupStatus) string {
	waiting := cli.Yes(s.Waiting > 0, screen.Bytes(s.Waiting)+" of WAL wait")
	switch s.Archive {
	case admin.ArchiveWorks:
		return cli.JoinTexts(", ", "works", waiting)
	case admin.ArchiveFails:
		return cli.JoinTexts(", ", "fails since "+at(s.Since)+": "+s.Failing, waiting)
	case admin.ArchiveBroken:
		return cli.JoinTexts(", ", "is broken from WAL file "+s.Broken+" on, until the next full backup", waiting)
	}
	return "nobody says how it is now"
}

func newestText(b *admin.Backup) string {
	if b == nil {
		return "none"
	}
	return cli.JoinTexts(", ", at(b.Taken), kindText(b.Kind), screen.Bytes(b.Stored)+" for "+screen.Bytes(b.Size), b.Label, cli.Yes(b.Member != "", "from "+fromText(*b)), cli.Yes(b.Damaged != "", "damaged"))
}

func drillLine(d *admin.Drill) string {
	switch {
	case d == nil:
		return "none yet"
	case d.Failed == "":
		return cli.JoinTexts(", ", "worked at "+at(d.Ended), "RTO "+span(d.RTO), rpoShort(*d))
	case d.Worked.IsZero():
		return "failed at " + at(d.Ended) + ", and none ever worked"
	}
	return "failed at " + at(d.Ended) + ", the last that worked was at " + at(d.Worked)
}

func withShow(id string) string { return cli.Yes(id != "", "howdah operations show "+id) }

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

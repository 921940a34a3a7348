package backups

import (
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newSnapshot(o *cli.Options) *cobra.Command {
	group := cli.Group("snapshot", "Make, list, copy, download and delete snapshots of databases",
		"A snapshot is a backup with a name. Those that users made are kept until they are deleted; automated ones are kept for the retention "+
			"period. `howdah db restore NEW --snapshot NAME` makes a database of one.",
		newSnapshotCreate(o), newSnapshotList(o), newSnapshotShow(o), newSnapshotCopy(o), newSnapshotDownload(o), newSnapshotDelete(o))
	group.Aliases = []string{"snapshots"}
	return group
}

func newSnapshotList(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "list [DB]", Short: "List snapshots, of all databases or one, of all accounts and regions", Args: cli.Args(cobra.MaximumNArgs(1)), Aliases: []string{"ls"},
		ValidArgsFunction: o.CompleteNames, Example: "  howdah snapshot list\n  howdah snapshot list orders",
		RunE: func(cmd *cobra.Command, names []string) error {
			out, err := cli.AskAdmin[admin.SnapshotsAnswer](cmd, o, admin.VerbSnapshots, admin.BackupsRequest{Name: strings.Join(names, "")})
			if err != nil {
				return err
			}
			return o.Print(out.Snapshots, func() error { return snapshotsTable(o, out.Snapshots) })
		},
	}
}

func snapshotsTable(o *cli.Options, all []admin.Snapshot) error {
	if len(all) == 0 {
		o.Say("No snapshots.")
		return nil
	}
	several := false
	for _, s := range all {
		several = several || s.Account != all[0].Account || s.Region != all[0].Region
	}
	var t screen.Table
	t.Head("NAME", "DATABASE", "STATE", "TAKEN", "SIZE", "STORED", "AUTOMATED", "PROVED", "REPOSITORY", "ACCOUNT", "REGION", "NOTE")
	for _, s := range all {
		size, stored := "", ""
		if s.State == "available" {
			size, stored = screen.Bytes(s.Size), screen.Bytes(s.Stored)
		}
		t.Row(s.Name, s.Database, stateCell(s), at(s.Taken), size, stored, cli.Yes(s.Automated, "yes"), at(s.Proved), s.Repository,
			cli.Yes(several, s.Account), cli.Yes(several, s.Region), snapshotNote(s))
	}
	return t.Write(o.Screen.Stdout, o.Screen.Color())
}

func stateCell(s admin.Snapshot) screen.Cell {
	switch s.State {
	case "available":
		return screen.Cell{Text: s.State, Style: screen.Green}
	case "failed":
		return screen.Cell{Text: s.State, Style: screen.Red}
	}
	return screen.Cell{Text: s.State, Style: screen.Yellow}
}

func snapshotNote(s admin.Snapshot) screen.Cell {
	switch {
	case s.Damaged != "":
		return screen.Cell{Text: "damaged", Style: screen.Red}
	case s.Reason != "":
		return screen.Cell{Text: s.Reason}
	case s.State != "available" && s.Operation != "":
		return screen.Cell{Text: "howdah operations show " + s.Operation}
	}
	return screen.Cell{}
}

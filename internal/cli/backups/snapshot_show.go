package backups

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newSnapshotShow(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "show SNAPSHOT", Short: "Show a snapshot: of what, of when, where it is, and whether it was proved", Args: cli.OneName,
		ValidArgsFunction: completeSnapshots(o), Example: "  howdah snapshot show before-sale",
		RunE: func(cmd *cobra.Command, names []string) error {
			found, err := snapshotsNamed(cmd, o, names[0])
			if err != nil {
				return err
			}
			return o.Print(found, func() error {
				for _, s := range found {
					if err := snapshotText(o, s); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// snapshotsNamed returns the snapshots of a name. Those of other accounts, of other regions and of
// clusters may have the same one.
func snapshotsNamed(cmd *cobra.Command, o *cli.Options, text string) ([]admin.Snapshot, error) {
	kind, name := splitKind(text)
	out, err := cli.AskAdmin[admin.SnapshotsAnswer](cmd, o, admin.VerbSnapshots, admin.BackupsRequest{})
	if err != nil {
		return nil, err
	}
	var found []admin.Snapshot
	for _, s := range out.Snapshots {
		if s.Name == name && (kind == "" || kind == s.Kind) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no snapshot %q: see %s", name, o.Pasteable("howdah snapshot list"))
	}
	return found, nil
}

// splitKind takes the kind from a name that has one.
func splitKind(text string) (kind, name string) {
	kind, name, qualified := strings.Cut(text, "/")
	if !qualified || kind != admin.KindInstance && kind != admin.KindCluster {
		return "", strings.ToLower(text)
	}
	return kind, strings.ToLower(name)
}

func snapshotText(o *cli.Options, s admin.Snapshot) error {
	o.Say("%s", o.Screen.Paint(screen.Bold, s.Name))
	available := s.State == "available"
	return facts(o, [][2]string{
		{"of", fmt.Sprintf("the %s %s (%s)", s.Kind, s.Database, s.ResourceID)},
		{"account", s.Account + ", region " + s.Region},
		{"state", cli.JoinTexts(": ", s.State, s.Reason)},
		{"data of", at(s.Taken)},
		{"kept", keptText(s)},
		{"size", cli.Yes(available, fmt.Sprintf("%s, with %s in the repository", screen.Bytes(s.Size), screen.Bytes(s.Stored)))},
		{"repository", cli.JoinTexts(", backup ", s.Repository, s.Label)},
		{"copy of", s.CopyOf},
		{"proved", at(s.Proved)},
		{"damaged", s.Damaged},
		{"being made", cli.Yes(!available && s.State != "failed", withShow(s.Operation))},
	})
}

func keptText(s admin.Snapshot) string {
	if s.Automated {
		return "as long as the automated backups of the database are"
	}
	return "until it is deleted"
}

// completeSnapshots completes the name of a snapshot as the first argument.
func completeSnapshots(o *cli.Options) cobra.CompletionFunc {
	return cli.CompleteFirst(func(cmd *cobra.Command) (names []string, err error) {
		out, err := cli.AskAdmin[admin.SnapshotsAnswer](cmd, o, admin.VerbSnapshots, admin.BackupsRequest{})
		for _, s := range out.Snapshots {
			names = append(names, s.Name)
		}
		return names, err
	})
}

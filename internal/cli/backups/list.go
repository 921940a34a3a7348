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

func newList(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List repositories", Args: cli.Args(cobra.NoArgs), Aliases: []string{"ls"}, Example: "  howdah repository list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := repositories(cmd, o)
			if err != nil {
				return err
			}
			return o.Print(all, func() error {
				if len(all) == 0 {
					o.Say("There is no repository: databases are not backed up. Add one: %s", o.Pasteable("howdah repository add NAME --s3 URL --bucket BUCKET"))
					return nil
				}
				var t screen.Table
				t.Head("NAME", "AT", "USED FOR", "DATABASES", "BACKUPS", "STORED", "KEY")
				for _, r := range all {
					t.Row(r.Name, where(r), purpose(r), strconv.Itoa(len(r.Databases)), strconv.Itoa(r.Backups), screen.Bytes(r.Stored), keyOf(r))
				}
				return t.Write(o.Screen.Stdout, o.Screen.Color())
			})
		},
	}
}

// where says where a repository is.
func where(r admin.Repository) string {
	if r.Path != "" {
		return r.Path
	}
	return r.Endpoint + "/" + r.Bucket + "/" + r.Prefix
}

func purpose(r admin.Repository) string {
	return cli.JoinTexts(", ", cli.Yes(r.Default, "default"), cli.Yes(r.Copies, "copies"))
}

func keyOf(r admin.Repository) string {
	switch {
	case !r.Encrypted:
		return "not encrypted"
	case r.Exported.IsZero():
		return "never exported"
	}
	return "exported " + r.Exported.UTC().Format(time.DateOnly)
}

func newShow(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a repository: where it is, what is in it, which databases use it", Args: cli.OneName,
		ValidArgsFunction: complete(o, anyOf), Example: "  howdah repository show default",
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := cli.AskAdmin[admin.Repository](cmd, o, admin.VerbRepositoryShow, admin.RepositoryRequest{Name: args[0]})
			if err != nil {
				return err
			}
			return o.Print(out, func() error { o.Say("%s", strings.Join(about(out), "\n")); return nil })
		},
	}
}

// about returns the lines that show a repository.
func about(r admin.Repository) []string {
	lines := []string{
		"name       " + r.Name, "id         " + r.ID, "at         " + where(r),
		"used for   " + orNothing(purpose(r)), "key        " + keyOf(r),
		"databases  " + orNothing(strings.Join(r.Databases, ", ")),
		fmt.Sprintf("backups    %d, with %s; %d snapshots", r.Backups, screen.Bytes(r.Stored), r.Snapshots),
	}
	for n, c := range r.Copied {
		lines = append(lines, label(n, "copies")+copyText(c))
	}
	if len(r.Seconds) > 0 {
		lines = append(lines, "second of  "+strings.Join(r.Seconds, ", ")+": their automated backups are made here, too")
	}
	if r.Size > 0 {
		lines = append(lines, fmt.Sprintf("free       %s of %s", screen.Bytes(r.Free), screen.Bytes(r.Size)))
	}
	if r.Trouble != "" {
		lines = append(lines, "trouble    "+r.Trouble)
	}
	return lines
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// label returns the name of a fact, before the first of several that have it.
func label(n int, name string) string { return fmt.Sprintf("%-11s", cli.Yes(n == 0, name)) }

func copyText(c admin.RepositoryCopy) string {
	text := fmt.Sprintf("%s, of %s", c.Snapshot, c.Database)
	if c.State != "available" {
		return text + ": " + c.State
	}
	return fmt.Sprintf("%s: %s, with %s", text, at(c.Taken), screen.Bytes(c.Stored))
}

package db

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/identity/home"
)

// rewindFlags are those of `howdah db rewind`.
type rewindFlags struct {
	point               pointFlags
	keepAs              string
	yes, dryRun, noWait bool
}

func newDBRewind(o *cli.Options) *cobra.Command {
	var f rewindFlags
	cmd := &cobra.Command{
		Use: "rewind NAME", Short: "Take a DB instance back to an earlier moment, in its place", Args: cli.OneName, ValidArgsFunction: o.CompleteNames,
		Long: "Gives a DB instance the data of an earlier moment. Its name, endpoint, password, tags and groups stay, so clients find these data where " +
			"they found the others. A snapshot of it as it is now is made first. It serves until the data of then are ready; then it is closed for some " +
			"seconds. What was committed after the moment, also until it is closed, is lost to it: the command says how much that is, and asks. " +
			"Anywhere but on a terminal it needs --yes. Ctrl-C leaves the work going on; `howdah operations cancel` ends it, and leaves the instance as it was.",
		Example: "  howdah db rewind orders --to 2026-11-24T12:00:00.123456Z --dry-run\n" +
			"  howdah db rewind orders --to 2026-11-24T12:00:00.123456Z\n" +
			"  howdah db rewind orders --snapshot before-sale --yes",
		RunE: func(cmd *cobra.Command, args []string) error { return runDBRewind(cmd, o, args[0], &f) },
	}
	flags := cmd.Flags()
	f.point.add(cmd)
	flags.StringVar(&f.keepAs, "keep-as", "", "name of the snapshot that is made first")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be gone back to, and what would be lost")
	flags.BoolVar(&f.noWait, "no-wait", false, "return as soon as it has begun")
	return cmd
}

// rewoundView is what the command prints as JSON.
type rewoundView struct {
	admin.RewindPlan
	// State is planned, begun or done.
	State string `json:"state"`
}

func runDBRewind(cmd *cobra.Command, o *cli.Options, name string, f *rewindFlags) error {
	at, err := f.point.point(cmd)
	if err != nil {
		return err
	}
	api, h, err := o.Connect(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	in := admin.RewindRequest{ID: cli.OperationID("rewind", name, o.Now()), Name: name, RestorePoint: at, KeepAs: f.keepAs, DryRun: true}
	var p admin.RewindPlan
	if f.dryRun || !f.yes {
		if err := api.Admin(ctx, admin.VerbRewind, in, &p); err != nil {
			return err
		}
	}
	if f.dryRun {
		return o.Print(rewoundView{p, "planned"}, func() error { return rewindText(o, o.Screen.Stdout, "would go back to", p) })
	}
	if !f.yes {
		if err := rewindText(o, o.Screen.Stderr, "goes back to", p); err != nil {
			return err
		}
		if err := o.Confirm("Type its name to go on: ", p.Name); err != nil {
			return err
		}
	}
	in.DryRun = false
	if err := api.Admin(ctx, admin.VerbRewind, in, &p); err != nil {
		return err
	}
	if f.yes {
		if err := rewindText(o, o.Screen.Stderr, "goes back to", p); err != nil {
			return err
		}
	}
	if f.noWait {
		return o.Print(rewoundView{p, "begun"}, func() error {
			o.Say("%s goes back to %s, after the snapshot %s: %s", p.Name, p.To, p.Snapshot, o.Watch(p.Operation))
			return nil
		})
	}
	if err := o.Await(cmd, p.Operation, "the rewind of "+p.Name, rewindStep); err != nil {
		return err
	}
	return finishRewind(ctx, o, api, h, p)
}

// finishRewind waits until clients are led to the data of then, and says what became of the others.
func finishRewind(ctx context.Context, o *cli.Options, api *client.Client, h *home.Home, p admin.RewindPlan) error {
	t, err := cli.FindInstance(ctx, api, p.Name)
	if err != nil {
		return err
	}
	if err := o.WaitFor(ctx, &t, "available"); err != nil {
		return err
	}
	if h != nil {
		if err := prunePasswords(ctx, api, h); err != nil { // its password is found by its new resource id
			return err
		}
	}
	return o.Print(rewoundView{p, "done"}, func() error {
		o.Say("%s has gone back to %s. Its resource id is %s now; it was %s.", p.Name, p.To, p.NextResourceID, p.ResourceID)
		o.Say("  as it was when that began    %s", o.Pasteable("howdah db restore NEW --snapshot "+p.Snapshot))
		if p.Retention > 0 {
			o.Say("  and all until it was closed  %s", o.Pasteable("howdah db restore NEW --from "+p.ResourceID+" --latest"))
		}
		o.Say("  moments from now on          when its first backup is made: %s", o.Pasteable("howdah backup show "+p.Name))
		return nil
	})
}

// rewindText says what is gone back to, and what is lost by that.
func rewindText(o *cli.Options, out interface{ Write([]byte) (int, error) }, verb string, p admin.RewindPlan) error {
	fmt.Fprintf(out, "%s %s %s:\n", p.Name, verb, p.To)
	facts := screen.Table{Indent: "  "}
	for _, f := range [][2]string{
		{"lost", lostText(p)},
		{"first", "a snapshot of it as it is now: " + p.Snapshot},
		{"backup", fmt.Sprintf("%s in repository %s, of %s, %s of files", p.Label, p.Repository, momentText(p.Taken), screen.Bytes(p.Size))},
		{"meanwhile", "it serves as it is, until the data of then are ready on " + strings.Join(p.Hosts, ", ") + "; then it is closed for some seconds"},
		{"stays", "its name, endpoint, password, tags and groups; its resource id is another one then"},
		{"later", laterText(o, p)},
	} {
		facts.Row(screen.Cell{Text: f[0], Style: screen.Dim}, f[1])
	}
	return facts.Write(out, o.Screen.Color())
}

// lostText says what is lost.
func lostText(p admin.RewindPlan) string {
	var much []string
	if p.LostSeconds > 0 {
		much = append(much, screen.Span(time.Duration(p.LostSeconds*float64(time.Second))))
	}
	if p.LostBytes >= 0 {
		much = append(much, cli.Yes(p.LostAtMost, "at most ")+screen.Bytes(p.LostBytes)+" of WAL")
	}
	if len(much) == 0 {
		much = []string{"nobody knows how much"}
	}
	return "everything that was committed since (" + strings.Join(much, ", ") + "), and what is committed until it is closed"
}

// laterText says where what is lost is found afterwards.
func laterText(o *cli.Options, p admin.RewindPlan) string {
	if p.Retention == 0 {
		return "what is committed after the snapshot is nowhere then: it has no automated backups"
	}
	days := fmt.Sprintf("%d days", p.Retention)
	if p.Retention == 1 {
		days = "a day"
	}
	return fmt.Sprintf("for %s, what is lost is found by %s", days, o.Pasteable("howdah db restore NEW --from "+p.ResourceID+" --latest"))
}

// rewindStep says in words what the operation does.
func rewindStep(p admin.Operation) string {
	switch p.Step {
	case "":
		return "waiting to begin"
	case "snapshot":
		return "making the snapshot"
	case "restore":
		return "restoring the data of then"
	case "close":
		return "closing the database"
	case "exchange":
		return "putting the data of then in its place"
	}
	return p.Step
}

package db

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

// restoreFlags are those of `howdah db restore`.
type restoreFlags struct {
	point                    pointFlags
	from, class, zone, group string
	storage, port            int32
	multiAZ, protect         bool
	dryRun, noWait           bool
}

func newDBRestore(o *cli.Options) *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use: "restore NEW", Short: "Make a new database with the data that another one had", Args: cli.OneName,
		Long: "Makes a new database of a snapshot, or with what another database had at a moment, also one that was deleted and whose automated " +
			"backups were kept. The other one goes on as it is. What is not given is as the other one had it, but for parameter, subnet and security " +
			"groups, which are the default ones, as on RDS. The new database is ready when its data are whole; Ctrl-C leaves the restore going on. " +
			"`howdah backup show DB` says which moments can be restored.",
		Example: "  howdah db restore orders-noon --from orders --to 2026-11-24T12:00:00.123456Z\n" +
			"  howdah db restore orders-2 --from orders --before-transaction 4711 --dry-run\n" +
			"  howdah db restore shop-again --snapshot before-sale --class db.m7g.large",
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.request(cmd, args[0])
			if err != nil {
				return err
			}
			return runRestore(cmd, o, in, f.noWait)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "the database whose data it gets: its name, or of one that was deleted also its resource id")
	f.point.add(cmd)
	flags.BoolVar(&f.point.latest, "latest", false, "the newest moment that can be restored")
	flags.StringVar(&f.class, "class", "", "DB instance class")
	flags.Int32Var(&f.storage, "storage", 0, "allocated storage in GiB: not less than the other one had")
	flags.Int32Var(&f.port, "port", 0, "port of the endpoint")
	flags.BoolVar(&f.multiAZ, "multi-az", false, "with (true) or without (false) a synchronous standby in another zone")
	flags.StringVar(&f.zone, "az", "", "zone of an instance without --multi-az: a, b, c, …")
	flags.StringVar(&f.group, "parameter-group", "", "DB parameter group")
	flags.BoolVar(&f.protect, "deletion-protection", false, "refuse to delete it")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be restored, from which backup, and where")
	flags.BoolVar(&f.noWait, "no-wait", false, "return as soon as the restore has begun")
	cli.Complete(cmd, "from", o.CompleteNames)
	cli.CompleteClasses(cmd)
	return cmd
}

func (f *restoreFlags) request(cmd *cobra.Command, name string) (admin.RestoreRequest, error) {
	if f.multiAZ && f.zone != "" {
		return admin.RestoreRequest{}, fmt.Errorf("--multi-az and --az exclude each other: %w", cli.ErrUsage)
	}
	if err := cli.Exclusive(cmd, "from", "snapshot"); err != nil {
		return admin.RestoreRequest{}, err
	}
	if f.from == "" && f.point.snapshot == "" {
		return admin.RestoreRequest{}, fmt.Errorf("say what to restore: --from DB, or --snapshot ID: %w", cli.ErrUsage)
	}
	at, err := f.point.point(cmd)
	return admin.RestoreRequest{
		Name: name, From: f.from, RestorePoint: at, Class: f.class, StorageGiB: f.storage, Port: f.port, MultiAZ: cli.Given(cmd, "multi-az", f.multiAZ),
		Zone: f.zone, ParameterGroup: f.group, Protect: f.protect, DryRun: f.dryRun,
	}, err
}

// runRestore has a database made of what another one had, or has.
func runRestore(cmd *cobra.Command, o *cli.Options, in admin.RestoreRequest, noWait bool) error {
	api, err := o.API(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	var p admin.RestorePlan
	if err := api.Admin(ctx, admin.VerbRestore, in, &p); err != nil {
		return err
	}
	if in.DryRun {
		return o.Print(p, func() error { return planText(o, p) })
	}
	t, err := cli.Find(ctx, api, p.Kind+"/"+p.Name)
	if err != nil {
		return err
	}
	if p.Kind == admin.KindCluster && !p.MultiAZ {
		return o.Print(p, func() error {
			o.Say("The cluster %s is made: its first instance gets the data: aws rds create-db-instance --engine aurora-postgresql --db-cluster-identifier %s --db-instance-identifier … --db-instance-class …", p.Name, p.Name)
			return nil
		})
	}
	if !noWait {
		if err := waitRestored(ctx, o, &t, p.Live); err != nil {
			return err
		}
	}
	return finish(ctx, o, &t, false, "", nil)
}

// planText says what a dry run found.
func planText(o *cli.Options, p admin.RestorePlan) error {
	verb := map[bool]string{true: "clone the %s %s of %s:", false: "restore the %s %s from %s:"}[p.Live]
	o.Say("would "+verb, p.Kind, p.Name, p.From)
	kind := []string{p.Class}
	if p.StorageGiB > 0 {
		kind = append(kind, fmt.Sprintf("%d GiB", p.StorageGiB))
	}
	facts := screen.Table{Indent: "  "}
	made := [][2]string{
		{"backup", fmt.Sprintf("%s in repository %s, of %s", p.Label, p.Repository, momentText(p.Taken))},
		{"size", screen.Bytes(p.Size) + " of files" + replayText(p)},
		{"data", targetText(p)},
	}
	if p.Live {
		made = cloneFacts(p)
	}
	for _, f := range append(made, [][2]string{
		{"as", cli.JoinTexts(", ", append(kind, azText(p.MultiAZ))...)},
		{"hosts", cmp.Or(strings.Join(p.Hosts, ", "), "those of the instances that are added to it")},
	}...) {
		facts.Row(screen.Cell{Text: f[0], Style: screen.Dim}, f[1])
	}
	return facts.Write(o.Screen.Stdout, o.Screen.Color())
}

// replayText says how much is replayed after the files are there.
func replayText(p admin.RestorePlan) string {
	switch span := p.Until.Sub(p.Taken); {
	case p.Latest || p.LSN != "" || p.Before != "":
		return ", and the WAL after it"
	case span > 0:
		return ", and the WAL of " + screen.Span(span) + " after it"
	}
	return ""
}

// waitRestored waits until a restored database, or a clone, is available, however long that takes,
// and shows how far it is. A restore that cannot succeed ends it.
func waitRestored(ctx context.Context, o *cli.Options, t *cli.Target, clone bool) error {
	p := o.Screen.Begin(o.Now)
	defer p.End()
	done := map[bool]string{true: "cloned", false: "restored"}[clone]
	what := t.Name + " to be " + done
	err := o.Poll(ctx, what, func() (bool, error) {
		truth, problems, err := t.Truth(ctx)
		if err == nil {
			err = t.Refresh(ctx)
		}
		if err != nil {
			return false, err
		}
		switch status := t.Status(); status {
		case "available":
			return true, nil
		case "":
			return false, fmt.Errorf("%s was deleted meanwhile", t.Name)
		case incompatibleRestore:
			return false, cannotRestore(o, t.Name, done, problems)
		default:
			showRestore(p, truth, status, o.Now())
		}
		return false, nil
	})
	if ctx.Err() != nil {
		return fmt.Errorf("no longer waiting for %s: it goes on: %s", what, o.Pasteable("howdah db show "+t.Name))
	}
	return err
}

// incompatibleRestore is the status of a database that cannot be restored.
const incompatibleRestore = "incompatible-restore"

func cannotRestore(o *cli.Options, name, done string, problems []admin.Problem) error {
	why := "see " + o.Pasteable("howdah db show "+name)
	if len(problems) > 0 {
		why = problems[0].Text
	}
	return fmt.Errorf("%s cannot be %s: %s: delete it with %s", name, done, why, o.Pasteable("howdah db delete "+name+" --skip-final-snapshot"))
}

// showRestore shows what goes on, with the bytes and the time left.
func showRestore(p *screen.Progress, d *admin.Database, status string, now time.Time) {
	if d == nil || len(d.Steps) == 0 {
		p.Step(status, now)
		return
	}
	last := d.Steps[len(d.Steps)-1]
	p.Step(last.Name, last.Began)
	for _, m := range d.Members {
		if m.Restoring != nil {
			p.Far(restoringText(*m.Restoring, now))
		}
	}
}

package db

import (
	"fmt"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

// cloneFlags are those of `howdah db clone`.
type cloneFlags struct {
	to, class, group string
	storage, port    int32
	multiAZ, protect bool
	dryRun, noWait   bool
}

func newDBClone(o *cli.Options) *cobra.Command {
	var f cloneFlags
	cmd := &cobra.Command{
		Use: "clone DB NEW", Short: "Make a writable copy of a database", Args: twoNames,
		Long: "Makes a new database with the data that another one has now: everything that was committed when the command began. The other one goes on " +
			"as it is, and neither sees what is written to the other. Where the file system of the databases can share blocks (XFS, Btrfs), it takes seconds " +
			"and no room at first; elsewhere all files are copied. --dry-run says which.\n\n" +
			"With --to it has the data of that moment. Those are not in the files of the database any more, so this is `howdah db restore`: a full copy " +
			"from the backups.\n\n" +
			"What is not given is as the other one has it, but for parameter, subnet and security groups, which are the default ones, and for the standby, " +
			"which a clone of an instance has with --multi-az only. Ctrl-C leaves the clone going on.",
		Example: "  howdah db clone orders orders-test\n" +
			"  howdah db clone orders orders-test --class db.t3.medium --dry-run\n" +
			"  howdah db clone orders orders-noon --to 2026-11-24T12:00:00Z",
		ValidArgsFunction: o.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.request(cmd, args[0], args[1])
			if err != nil {
				return err
			}
			return runRestore(cmd, o, in, f.noWait)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "a moment with its zone, to the microsecond: a restore to it, not a clone")
	flags.StringVar(&f.class, "class", "", "DB instance class")
	flags.Int32Var(&f.storage, "storage", 0, "allocated storage in GiB: not less than the other one has")
	flags.Int32Var(&f.port, "port", 0, "port of the endpoint")
	flags.BoolVar(&f.multiAZ, "multi-az", false, "with (true) or without (false) a synchronous standby in another zone")
	flags.StringVar(&f.group, "parameter-group", "", "DB parameter group")
	flags.BoolVar(&f.protect, "deletion-protection", false, "refuse to delete it")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be copied, where, and whether it takes room")
	flags.BoolVar(&f.noWait, "no-wait", false, "return as soon as the clone has begun")
	cli.CompleteClasses(cmd)
	return cmd
}

func twoNames(cmd *cobra.Command, args []string) error {
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		return fmt.Errorf("db clone takes the name of a database, and one for the clone: %w", cli.ErrUsage)
	}
	return nil
}

func (f *cloneFlags) request(cmd *cobra.Command, from, name string) (admin.RestoreRequest, error) {
	in := admin.RestoreRequest{
		Name: name, From: from, Class: f.class, StorageGiB: f.storage, Port: f.port, MultiAZ: cli.Given(cmd, "multi-az", f.multiAZ),
		ParameterGroup: f.group, Protect: f.protect, DryRun: f.dryRun,
	}
	if !cmd.Flags().Changed("to") {
		in.Live = true
		return in, nil
	}
	moment, err := parseMoment(f.to)
	in.Time = &moment
	return in, err
}

// cloneFacts are what a dry run says of a clone.
func cloneFacts(p admin.RestorePlan) [][2]string {
	if !p.MultiAZ && p.Kind == admin.KindCluster {
		return [][2]string{{"data", "what " + p.From + " has when the first instance is added to the clone"}}
	}
	return [][2]string{{"data", "everything that is committed now"}, {"copy", copyText(p)}}
}

// copyText says how a clone is made, and where.
func copyText(p admin.RestorePlan) string {
	// What the other one has is measured with its WAL, most of which is not copied.
	size, at := "up to "+screen.Bytes(p.Size), " on host "+p.Hosts[0]
	if p.Size == 0 { // it is new
		size = "all files"
	}
	if p.Thin {
		return "thin" + at + ": it shares " + size + " with " + p.From + ", and takes room as either changes"
	}
	return "full" + at + ": " + size + " are copied, because the file system there cannot share blocks"
}

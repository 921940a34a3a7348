package db

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/pgpass"
	"howdah/internal/identity/home"
	"howdah/internal/model/spec"
)

// createFlags are those of `howdah db create`.
type createFlags struct {
	class, version, user, dbname, storageType, zone string
	storage, maxStorage, iops, port                 int32
	multiAZ, protect, noWait, dryRun                bool
	tags                                            []string
	password                                        passwordFlags
}

func newDBCreate(o *cli.Options) *cobra.Command {
	var f createFlags
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a DB instance", Args: cli.OneName,
		Aliases: []string{"new", "add"},
		Long: "Creates a DB instance and waits until it is available. Without --password-file or --password-stdin a password " +
			"is made and kept in the file pgpass of the home, which `howdah db connect` and psql read.",
		Example: "  howdah db create orders --multi-az\n" +
			"  howdah db create orders --class db.m7g.large --storage 100 --iops 3000 --dbname shop --tag team=sales\n" +
			"  pass show orders | howdah db create orders --user app --password-stdin",
		RunE: func(cmd *cobra.Command, args []string) error { return runDBCreate(cmd, o, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.class, "class", "db.t3.micro", "DB instance class: how many CPUs and how much memory")
	flags.Int32Var(&f.storage, "storage", 20, "allocated storage in GiB")
	flags.Int32Var(&f.maxStorage, "max-storage", 0, "how many GiB the storage may grow to by itself (default: it does not)")
	flags.StringVar(&f.storageType, "storage-type", "", "gp2, gp3, io1 or io2")
	flags.Int32Var(&f.iops, "iops", 0, "provisioned I/O operations a second")
	flags.BoolVar(&f.multiAZ, "multi-az", false, "with a synchronous standby in another zone")
	flags.StringVar(&f.zone, "az", "", "zone of an instance without --multi-az: a, b, c, …")
	flags.StringVar(&f.version, "engine-version", "", "version of PostgreSQL (default: the newest that is installed)")
	flags.StringVar(&f.user, "user", "postgres", "name of the master user")
	flags.StringVar(&f.dbname, "dbname", "", "database to create (default: only postgres)")
	flags.Int32Var(&f.port, "port", 5432, "port of the endpoint")
	flags.StringArrayVar(&f.tags, "tag", nil, "a tag as KEY=VALUE; may be given again")
	flags.BoolVar(&f.protect, "deletion-protection", false, "refuse to delete it")
	flags.BoolVar(&f.noWait, "no-wait", false, "return as soon as the request is accepted")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be created")
	f.password.add(cmd)
	cli.CompleteClasses(cmd)
	return cmd
}

func runDBCreate(cmd *cobra.Command, o *cli.Options, name string, f *createFlags) error {
	in, err := f.input(cmd, name)
	if err != nil {
		return err
	}
	api, h, err := o.Connect(cmd)
	if err != nil {
		return err
	}
	if f.dryRun {
		return dryCreate(cmd.Context(), o, api, in)
	}
	password, err := f.password.read(o, cmd)
	if err != nil {
		return err
	}
	made := password == ""
	if made {
		if h == nil {
			return fmt.Errorf("there is no home here to keep a password in: give --password-file or --password-stdin: %w", cli.ErrUsage)
		}
		password = pgpass.Generate()
	}
	in.MasterUserPassword = &password
	t, err := create(cmd.Context(), api, in)
	if err != nil {
		return err
	}
	if err := keepPassword(cmd.Context(), &t, h, f.user, password, made); err != nil {
		return err
	}
	return finish(cmd.Context(), o, &t, !f.noWait, "available", func() error { sayConnect(cmd.Context(), o, &t, h); return nil })
}

func (f *createFlags) input(cmd *cobra.Command, name string) (*rds.CreateDBInstanceMessage, error) {
	if f.multiAZ && f.zone != "" {
		return nil, fmt.Errorf("--multi-az and --az exclude each other: %w", cli.ErrUsage)
	}
	tags, err := parseTags(f.tags)
	if err != nil {
		return nil, err
	}
	engine := spec.Postgres
	return &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: &name, Engine: &engine, DBInstanceClass: &f.class, AllocatedStorage: &f.storage,
		MaxAllocatedStorage: cli.Given(cmd, "max-storage", f.maxStorage),
		StorageType:         cli.Given(cmd, "storage-type", f.storageType), Iops: cli.Given(cmd, "iops", f.iops), MultiAZ: &f.multiAZ,
		EngineVersion: cli.Given(cmd, "engine-version", f.version), MasterUsername: &f.user,
		DBName: cli.Given(cmd, "dbname", f.dbname), Port: &f.port, Tags: tags,
		AvailabilityZone: cli.Given(cmd, "az", f.zone), DeletionProtection: cli.Given(cmd, "deletion-protection", f.protect),
	}, nil
}

func parseTags(texts []string) ([]rds.Tag, error) {
	var tags []rds.Tag
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--tag: %q is not KEY=VALUE: %w", text, cli.ErrUsage)
		}
		tags = append(tags, rds.Tag{Key: &key, Value: &value})
	}
	return tags, nil
}

// create sends the request. The command line names a zone by its letter, and the API by the
// region's name and the letter.
func create(ctx context.Context, api *client.Client, in *rds.CreateDBInstanceMessage) (cli.Target, error) {
	if in.AvailabilityZone != nil {
		full := spec.Scope{Region: api.Region}.ZoneName(*in.AvailabilityZone)
		in.AvailabilityZone = &full
	}
	var out rds.CreateDBInstanceResult
	if err := api.RDS(ctx, "CreateDBInstance", in, &out); err != nil {
		return cli.Target{}, err
	}
	return cli.Target{API: api, Name: cli.Value(out.DBInstance.DBInstanceIdentifier), Instance: out.DBInstance}, nil
}

// keepPassword writes a password to the home's file if made says that Howdah made it. It removes
// what an earlier database at the same address may have left there.
func keepPassword(ctx context.Context, t *cli.Target, h *home.Home, user, password string, made bool) error {
	if h == nil {
		return nil
	}
	truth, _, err := t.Truth(ctx)
	if err == nil && (truth == nil || len(truth.Endpoints) == 0) {
		err = fmt.Errorf("%s has no address", t.Name)
	}
	if err == nil {
		err = storePassword(ctx, t, h, truth.Endpoints[0].Address, pgpass.Entry{
			ResourceID: t.ResourceID(), User: user, Password: password,
		}, made)
	}
	if err != nil && made {
		return fmt.Errorf("%s is being created, but its password could not be kept: "+
			"set another one with howdah db modify %s --password-stdin: %w", t.Name, t.Name, err)
	}
	return err
}

func storePassword(ctx context.Context, t *cli.Target, h *home.Home, address string, e pgpass.Entry, made bool) error {
	if err := prunePasswords(ctx, t.API, h); err != nil {
		return err
	}
	if !made {
		return nil
	}
	var err error
	if e.Host, _, err = net.SplitHostPort(address); err != nil {
		return fmt.Errorf("endpoint of %s: %w", t.Name, err)
	}
	e.Port = "*" // the address is the database's own, and its port may change
	return Passwords(h).Put(e)
}

// dryCreate says what would be created. It returns an error if the name is taken.
func dryCreate(ctx context.Context, o *cli.Options, api *client.Client, in *rds.CreateDBInstanceMessage) error {
	taken, err := cli.DescribeInstance(ctx, api, strings.ToLower(*in.DBInstanceIdentifier))
	if err != nil {
		return err
	}
	if taken != nil {
		return fmt.Errorf("there is an instance %s already", cli.Value(taken.DBInstanceIdentifier))
	}
	view := plannedView{
		Name: strings.ToLower(*in.DBInstanceIdentifier), Class: *in.DBInstanceClass, StorageGiB: int(*in.AllocatedStorage),
		StorageType: cli.Value(in.StorageType), IOPS: int(cli.Value(in.Iops)), MultiAZ: *in.MultiAZ, Zone: cli.Value(in.AvailabilityZone),
		EngineVersion: cli.Value(in.EngineVersion), User: *in.MasterUsername, DBName: cli.Value(in.DBName), Port: int(*in.Port),
		Tags: tagView(in.Tags),
	}
	return o.Print(view, func() error {
		o.Say("would create the instance %s: %s, %d GiB, %s, master user %s, port %d",
			view.Name, view.Class, view.StorageGiB, azText(view.MultiAZ), view.User, view.Port)
		return nil
	})
}

// plannedView is what --dry-run answers as JSON.
type plannedView struct {
	Name          string            `json:"name"`
	Class         string            `json:"class"`
	StorageGiB    int               `json:"storage_gib"`
	StorageType   string            `json:"storage_type,omitempty"`
	IOPS          int               `json:"iops,omitempty"`
	MultiAZ       bool              `json:"multi_az"`
	Zone          string            `json:"zone,omitempty"`
	EngineVersion string            `json:"engine_version,omitempty"`
	User          string            `json:"user"`
	DBName        string            `json:"dbname,omitempty"`
	Port          int               `json:"port"`
	Tags          map[string]string `json:"tags,omitempty"`
}

func tagView(tags []rds.Tag) map[string]string {
	view := map[string]string{}
	for _, t := range tags {
		view[cli.Value(t.Key)] = cli.Value(t.Value)
	}
	return view
}

func azText(multi bool) string {
	if multi {
		return "Multi-AZ"
	}
	return "single-AZ"
}

// finish waits for a status if wait says so, and then shows the target.
func finish(ctx context.Context, o *cli.Options, t *cli.Target, wait bool, status string, after func() error) error {
	if wait {
		if err := o.WaitFor(ctx, t, status); err != nil {
			return err
		}
	} else if err := t.Refresh(ctx); err != nil {
		return err
	}
	return o.Print(viewOf(t), func() error {
		if !wait {
			o.Say("%s is %s", t.Name, t.Status())
			return nil
		}
		return after()
	})
}

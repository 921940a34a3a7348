package db

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/cli"
)

// modifyFlags are those of `howdah db modify`.
type modifyFlags struct {
	class, version, storageType, newName string
	storage, maxStorage, iops, port      int32
	multiAZ, protect, now, noWait        bool
	password                             passwordFlags
}

func newDBModify(o *cli.Options) *cobra.Command {
	var f modifyFlags
	cmd := &cobra.Command{
		Use: "modify NAME", Short: "Change a DB instance", Args: cli.OneName, Aliases: []string{"update", "edit"},
		ValidArgsFunction: o.CompleteNames,
		Long: "Changes what is given and nothing else. Without --apply-immediately, what interrupts clients waits for the " +
			"instance's maintenance window; `howdah db show` says so.",
		Example: "  howdah db modify orders --class db.m7g.large --apply-immediately\n" +
			"  howdah db modify orders --multi-az=false --apply-immediately\n" +
			"  howdah db modify orders --password-file new-password",
		RunE: func(cmd *cobra.Command, args []string) error { return runDBModify(cmd, o, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.class, "class", "", "DB instance class")
	flags.Int32Var(&f.storage, "storage", 0, "allocated storage in GiB: it can only grow")
	flags.Int32Var(&f.maxStorage, "max-storage", 0, "how many GiB the storage may grow to by itself; the size itself: it does not grow")
	flags.StringVar(&f.storageType, "storage-type", "", "gp2, gp3, io1 or io2")
	flags.Int32Var(&f.iops, "iops", 0, "provisioned I/O operations a second")
	flags.BoolVar(&f.multiAZ, "multi-az", false, "with (true) or without (false) a standby in another zone")
	flags.StringVar(&f.version, "engine-version", "", "version of PostgreSQL")
	flags.StringVar(&f.newName, "new-name", "", "another name")
	flags.Int32Var(&f.port, "port", 0, "port of the endpoint")
	flags.BoolVar(&f.protect, "deletion-protection", false, "refuse (true) to delete it, or not (false)")
	flags.BoolVar(&f.now, "apply-immediately", false, "do not wait for the maintenance window")
	flags.BoolVar(&f.noWait, "no-wait", false, "return as soon as the request is accepted")
	f.password.add(cmd)
	cli.CompleteClasses(cmd)
	return cmd
}

// changing lists the flags that change something.
var changing = []string{
	"class", "storage", "max-storage", "storage-type", "iops", "multi-az", "engine-version", "new-name", "port",
	"deletion-protection", "password-file", "password-stdin",
}

func runDBModify(cmd *cobra.Command, o *cli.Options, name string, f *modifyFlags) error {
	if !anyChanged(cmd, changing) {
		return fmt.Errorf("nothing to change was given: %w", cli.ErrUsage)
	}
	ctx := cmd.Context()
	api, h, err := o.Connect(cmd)
	if err != nil {
		return err
	}
	t, err := cli.FindInstance(ctx, api, name)
	if err != nil {
		return err
	}
	in := f.input(cmd, t.Name)
	password, err := f.password.read(o, cmd)
	if err != nil {
		return err
	}
	if password != "" {
		in.MasterUserPassword = &password
	}
	if err := api.RDS(ctx, "ModifyDBInstance", in, &rds.ModifyDBInstanceResult{}); err != nil {
		return err
	}
	if password != "" && h != nil {
		// A password that was kept is not right any more, also one of before it went back in its place.
		if err := prunePasswords(ctx, api, h); err != nil {
			return err
		}
		if err := Passwords(h).Keep(func(id string) bool { return id != t.ResourceID() }); err != nil {
			return err
		}
	}
	if f.now && f.newName != "" {
		t.Name = f.newName
	}
	return finish(ctx, o, &t, !f.noWait && settles(&t), "available", func() error { sayModified(o, t.Instance); return nil })
}

func anyChanged(cmd *cobra.Command, flags []string) bool {
	for _, f := range flags {
		if cmd.Flags().Changed(f) {
			return true
		}
	}
	return false
}

// settles reports whether the target will be available again, because it was running.
func settles(t *cli.Target) bool { return t.Status() != "stopped" && t.Status() != "stopping" }

func (f *modifyFlags) input(cmd *cobra.Command, name string) *rds.ModifyDBInstanceMessage {
	return &rds.ModifyDBInstanceMessage{
		DBInstanceIdentifier: &name, ApplyImmediately: &f.now,
		DBInstanceClass: cli.Given(cmd, "class", f.class), AllocatedStorage: cli.Given(cmd, "storage", f.storage),
		MaxAllocatedStorage: cli.Given(cmd, "max-storage", f.maxStorage),
		StorageType:         cli.Given(cmd, "storage-type", f.storageType), Iops: cli.Given(cmd, "iops", f.iops),
		MultiAZ: cli.Given(cmd, "multi-az", f.multiAZ), EngineVersion: cli.Given(cmd, "engine-version", f.version),
		NewDBInstanceIdentifier: cli.Given(cmd, "new-name", f.newName), DBPortNumber: cli.Given(cmd, "port", f.port),
		DeletionProtection: cli.Given(cmd, "deletion-protection", f.protect),
	}
}

// sayModified says what is done and what waits.
func sayModified(o *cli.Options, i *rds.DBInstance) {
	if waiting := pendingNames(i); len(waiting) > 0 {
		o.Say("%s: %s waits for the maintenance window %s, because it interrupts clients; --apply-immediately does it now",
			cli.Value(i.DBInstanceIdentifier), strings.Join(waiting, ", "), cli.Value(i.PreferredMaintenanceWindow))
		return
	}
	o.Say("%s is modified", cli.Value(i.DBInstanceIdentifier))
}

// plainNames has the flags' names for what is modified.
var plainNames = map[string]string{
	"DBInstanceClass": "class", "AllocatedStorage": "storage", "StorageType": "storage-type", "Iops": "iops", "MultiAZ": "multi-az",
	"EngineVersion": "engine-version", "DBInstanceIdentifier": "new-name", "Port": "port", "MasterUserPassword": "password",
}

// pendingNames returns the names of the changes that wait.
func pendingNames(i *rds.DBInstance) []string {
	if i.PendingModifiedValues == nil {
		return nil
	}
	var names []string
	v := reflect.ValueOf(*i.PendingModifiedValues)
	for n := range v.NumField() {
		field := v.Field(n)
		if field.Kind() == reflect.Pointer && !field.IsNil() || field.Kind() == reflect.Slice && field.Len() > 0 {
			names = append(names, cmp.Or(plainNames[v.Type().Field(n).Name], v.Type().Field(n).Name))
		}
	}
	return names
}

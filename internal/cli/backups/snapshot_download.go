package backups

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/backups/unpack"
	"howdah/internal/cli/screen"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/backup"
)

// downloadFlags are those of `howdah snapshot download`.
type downloadFlags struct {
	admin.SnapshotDownloadRequest
	dir string
}

func newSnapshotDownload(o *cli.Options) *cobra.Command {
	var f downloadFlags
	cmd := &cobra.Command{
		Use: "download SNAPSHOT DIR", Short: "Take the data of a snapshot out: a plain data directory, or a dump", Args: cli.Args(cobra.ExactArgs(2)),
		ValidArgsFunction: completeSnapshot(o),
		Long: "Writes the data of a snapshot to a new directory of this machine, that a plain PostgreSQL of the same major version can be started on, " +
			"or what pg_dump and pg_dumpall write. A host restores the snapshot to a place of its own meanwhile; databases go on. The files belong to " +
			"whoever runs the command, and nobody else may read them; they are not encrypted. Nothing is at DIR before all of it is there: an " +
			"interrupted download is simply repeated, and what the host made ready waits for that half an hour.",
		Example: "  howdah snapshot download before-sale ./before-sale\n  howdah snapshot download before-sale ./dump --format dump --database shop",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Snapshot, f.dir = args[0], args[1]
			return runSnapshotDownload(cmd, o, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Format, "format", string(backup.DataDirectory), "directory: a data directory; dump: what pg_dump writes for each database, and the roles")
	flags.StringVar(&f.Database, "database", "", "with --format dump: only this database, and the roles")
	flags.BoolVar(&f.Verifiers, "with-passwords", false, "also the SCRAM verifiers of passwords")
	flags.BoolVar(&f.UnencryptedOK, "unencrypted-ok", false, "do not ask whether data of encrypted storage may be written without encryption")
	flags.BoolVar(&f.DryRun, "dry-run", false, "only say what would be downloaded")
	cli.Complete(cmd, "format", cobra.FixedCompletions([]string{string(backup.DataDirectory), string(backup.Dump)}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// completeSnapshot completes a snapshot, and a directory after it.
func completeSnapshot(o *cli.Options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return completeSnapshots(o)(cmd, args, text)
	}
}

func runSnapshotDownload(cmd *cobra.Command, o *cli.Options, f *downloadFlags) error {
	if f.Format != string(backup.DataDirectory) && f.Format != string(backup.Dump) {
		return fmt.Errorf("--format is directory or dump, not %q: %w", f.Format, cli.ErrUsage)
	}
	if f.Database != "" && f.Format != string(backup.Dump) {
		return fmt.Errorf("--database is for --format dump: a data directory has all databases: %w", cli.ErrUsage)
	}
	to, err := unpack.At(f.dir)
	if err != nil {
		return err
	}
	f.ID = cli.OperationID("download", f.Snapshot, o.Now())
	out, err := beginDownload(cmd, o, f)
	if err != nil {
		return err
	}
	if f.DryRun {
		return o.Print(out, func() error { return downloadPlan(o, out, to.Dir) })
	}
	d := &downloading{cmd: cmd, o: o, of: out, to: to}
	if err := d.run(); err != nil {
		return err
	}
	return o.Print(d.done, func() error { return d.say() })
}

// beginDownload asks for a download. Of encrypted storage it asks a person first.
func beginDownload(cmd *cobra.Command, o *cli.Options, f *downloadFlags) (admin.SnapshotDownload, error) {
	out, err := cli.AskAdmin[admin.SnapshotDownload](cmd, o, admin.VerbSnapshotDownload, f.SnapshotDownloadRequest)
	if !client.IsCode(err, admin.CodeDownloadEncrypted) || !o.Screen.Terminal.In() {
		return out, err
	}
	question := fmt.Sprintf("The storage of this database was encrypted, and what is written to %s is not. Type the name of the snapshot to go on: ", f.dir)
	if err := o.Confirm(question, f.Snapshot); err != nil {
		return out, err
	}
	f.UnencryptedOK = true
	return cli.AskAdmin[admin.SnapshotDownload](cmd, o, admin.VerbSnapshotDownload, f.SnapshotDownloadRequest)
}

func downloadPlan(o *cli.Options, p admin.SnapshotDownload, dir string) error {
	o.Say("would download %s to %s:", p.Snapshot.Name, dir)
	return facts(o, [][2]string{
		{"data", fmt.Sprintf("of the %s %s of %s", p.Snapshot.Kind, p.Snapshot.Database, at(p.Snapshot.Taken))},
		{"as", downloadForm(p)},
		{"size", "about " + screen.Bytes(p.Snapshot.Size) + ", before a dump compresses it"},
		{"host", "one with " + screen.Bytes(p.Room) + " of free disk restores it for a while"},
		{"warning", cli.Yes(p.Encrypted, "the database's storage was encrypted, and what is written is not: --unencrypted-ok")},
	})
}

func downloadForm(p admin.SnapshotDownload) string {
	switch {
	case p.Format == string(backup.DataDirectory):
		return "a data directory of PostgreSQL"
	case p.Database != "":
		return "a dump of the database " + p.Database + ", and of the roles"
	}
	return "a dump of each database, and of the roles"
}

// downloading is a download under way.
type downloading struct {
	cmd  *cobra.Command
	o    *cli.Options
	of   admin.SnapshotDownload
	to   *unpack.Target
	done Downloaded
}

// Downloaded is what a download wrote.
type Downloaded struct {
	Snapshot string   `json:"snapshot"`
	Dir      string   `json:"dir"`
	Format   string   `json:"format"`
	Files    int      `json:"files"`
	Bytes    int64    `json:"bytes"`
	Database []string `json:"databases"`
}

// mostFetches is how often a download is begun anew that was cut off.
const mostFetches = 5

// run has the data be made ready, and fetches them.
func (d *downloading) run() error {
	if err := d.to.Open(); err != nil {
		return err
	}
	defer d.to.Close()
	begun := admin.BackupBegun{Operation: d.of.Operation, Database: d.of.Snapshot.Database}
	what := "the download of " + d.of.Snapshot.Name
	for try := 1; ; try++ {
		now, err := awaitUntil(d.cmd, d.o, begun, what, func(p admin.Operation) bool { return p.Step == backup.StepServe })
		switch {
		case err != nil:
			return err
		case now.Ended:
			return fmt.Errorf("somebody else has fetched what was made ready: repeat the command") //nolint:err113 // for people alone
		}
		note, err := d.fetch()
		if err == nil {
			return d.finish(note)
		}
		if d.cmd.Context().Err() != nil {
			return fmt.Errorf("no longer fetching %s: repeat the command within half an hour, and nothing has to be restored again", d.of.Snapshot.Name) //nolint:err113 // for people alone
		}
		if !again(err) || try == mostFetches {
			return fmt.Errorf("fetch %s: %w: repeat the command", d.of.Snapshot.Name, err)
		}
		fmt.Fprintln(d.o.Screen.Stderr, "          "+cli.OneLine(err)+": it is fetched again")
		select {
		case <-d.cmd.Context().Done():
		case <-time.After(5 * d.o.Every):
		}
	}
}

// again reports whether another fetch may do better.
func again(err error) bool {
	return errors.Is(err, hostapi.ErrCut) || errors.Is(err, client.ErrUnreachable) || client.IsCode(err, admin.CodeNotReady) || client.IsCode(err, admin.CodeUnavailable)
}

// fetch writes what is ready to its place, as long as that takes.
func (d *downloading) fetch() (*backup.DownloadNote, error) {
	api, err := d.o.API(d.cmd)
	if err != nil {
		return nil, err
	}
	stream, err := api.Fetch(d.cmd.Context(), admin.VerbSnapshotFetch, admin.SnapshotFetchRequest{Operation: d.of.Operation})
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // it was read to its end, or failed
	p := d.o.Screen.Begin(d.o.Now)
	defer p.End()
	p.Step("fetching", d.o.Now())
	pace := cli.Pace{Now: d.o.Now}
	return d.to.Unpack(stream, stream.Size, func(done int64) {
		p.Far(pace.Text(admin.Operation{Done: done, Of: max(stream.Size, done), Unit: "bytes"}))
	})
}

// finish puts what was fetched in its place, and ends the operation.
func (d *downloading) finish(note *backup.DownloadNote) error {
	name := "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	err := d.to.Finish(*note, unpack.About{
		Snapshot: d.of.Snapshot.Name, Database: d.of.Snapshot.Database, Taken: d.of.Snapshot.Taken, User: name, Verifiers: note.Verifiers,
	})
	if err != nil {
		return err
	}
	d.done = Downloaded{Snapshot: d.of.Snapshot.Name, Dir: d.to.Dir, Format: string(note.Form), Files: note.Files, Bytes: note.Bytes, Database: note.Databases}
	if d.of.Database != "" {
		d.done.Database = []string{d.of.Database}
	}
	// If nobody hears of it, the host removes what it made half an hour later.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.cmd.Context()), 10*time.Second)
	defer cancel()
	if api, err := d.o.API(d.cmd); err == nil {
		_ = api.Admin(ctx, admin.VerbSnapshotFetch, admin.SnapshotFetchRequest{Operation: d.of.Operation, Taken: true}, &admin.Nothing{})
	}
	return nil
}

func (d *downloading) say() error {
	d.o.Say("%s is in %s: %s in %s", d.of.Snapshot.Name, d.to.Dir, number(d.done.Files, "file"), screen.Bytes(d.done.Bytes))
	d.o.Say("%s says how to use it. It is not encrypted.", unpack.ReadMe)
	return nil
}

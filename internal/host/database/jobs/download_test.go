package jobs

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/host/job"
	model "howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/system/owner"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgversion"
)

// sale is a depot whose newest backup has what databases of users have, after more statements.
func newSale(t *testing.T, statements ...string) *depot {
	t.Helper()
	d := newDepot(t)
	for _, statement := range []string{
		"CREATE ROLE rdsadmin SUPERUSER LOGIN", "CREATE ROLE boss LOGIN PASSWORD 'a password'", "CREATE DATABASE shop OWNER boss", `CREATE DATABASE "a/b 'c'"`,
		"ALTER DATABASE shop SET statement_timeout = '1ms'",
		"CREATE DATABASE closed", "ALTER DATABASE closed ALLOW_CONNECTIONS false",
		"CREATE DATABASE broken", "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'broken'", // as an interrupted DROP DATABASE does
		"CREATE ROLE nobody_there",
	} {
		d.server.Exec(statement)
	}
	d.inPostgres(statements...)
	config := d.server.Config()
	config.Database = "shop"
	config.RuntimeParams["statement_timeout"] = "0"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// Whoever logs in there is somebody who may read nothing.
	if _, err := conn.Exec(t.Context(), "CREATE TABLE goods (i int); ALTER DATABASE shop SET role = nobody_there"); err != nil {
		t.Fatal(err)
	}
	d.run(d.engine.Backup(d.place, backup.Take{Repository: "main", Kind: model.Full, Operation: "op-sale"}))
	return d
}

// inPostgres runs statements in the database postgres.
func (d *depot) inPostgres(statements ...string) {
	d.Helper()
	config := d.server.Config()
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(d.Context(), config)
	d.must(err)
	defer conn.Close(d.Context())
	for _, statement := range statements {
		_, err := conn.Exec(d.Context(), statement)
		d.must(err)
	}
}

// trial is a job that downloads, with an agent that ends where a test says.
type trial struct {
	*depot
	host *Host
	args model.DownloadJob
	name string
}

func (d *depot) download(name string, asked model.Downloading) *trial {
	d.Helper()
	h := d.host()
	h.Offers, h.Room = &Offers{}, func() (int64, int64, error) { return 1 << 40, 1 << 39, nil }
	h.Sockets = func(name string, user *owner.User) (string, error) {
		dir := filepath.Join(filepath.Dir(d.jobs), name[:min(len(name), 20)])
		return dir, user.GiveDir(dir)
	}
	return &trial{depot: d, host: h, name: name, args: model.DownloadJob{Downloading: asked, DrillJob: model.DrillJob{
		Database: resource, Repository: "main", Label: d.newest().Label, Major: pgversion.Major(), Room: 1,
	}}}
}

// try does the job until ctx, the agent, ends.
func (w *trial) try(ctx context.Context, resume bool) (member.JobReport, error) {
	w.Helper()
	text, err := json.Marshal(w.args)
	w.must(err)
	_, report, err := job.Try(ctx, job.Kind{Name: model.JobDownload, Run: w.host.download}, member.Job{Name: w.name, Host: "a", Kind: model.JobDownload, Args: text}, job.Trial{
		Dir: w.jobs, Procs: w.procs, Resume: resume, Log: slog.New(slog.DiscardHandler),
	})
	return report, err
}

// killed has the agent end at a step.
func (w *trial) killed(step string, resume bool) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	reached := false
	w.host.at = func(at string) error {
		if at != step {
			return nil
		}
		reached = true
		cancel()
		return ctx.Err()
	}
	defer func() { w.host.at = nil }()
	if _, err := w.try(ctx, resume); err == nil || !reached {
		w.Fatalf("%s: the job did not end there: %v", step, err)
	}
	if _, err := w.host.Offers.Of(w.name); !errors.Is(err, ErrNoOffer) {
		w.Errorf("%s: what is not ready is offered: %v", step, err)
	}
}

// fetched runs the job, fetches what it offers twice, and has it end.
func (w *trial) fetched(resume bool) (note model.DownloadNote, files map[string][]byte) {
	w.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := w.try(w.Context(), resume)
		ended <- err
	}()
	var o *Offer
	testkit.Eventually(w, time.Minute, func() (err error) {
		select {
		case err := <-ended:
			w.Fatalf("the job ended: %v", err)
		default:
		}
		o, err = w.host.Offers.Of(w.name)
		return err
	})
	var first, second bytes.Buffer
	w.must(o.Send(w.Context(), &cut{to: &first, after: 100 << 10}))
	w.must(o.Send(w.Context(), &second))
	note, files = w.unpacked(&second)
	if sent, _ := o.seen(); sent != note.Bytes || o.Bytes() != note.Bytes {
		w.Errorf("%d bytes were sent, of %d, and the note says %d", sent, o.Bytes(), note.Bytes)
	}
	o.Taken()
	o.Taken()
	w.must(<-ended)
	return note, files
}

// cut is a client that is gone after some bytes.
type cut struct {
	to    io.Writer
	after int
}

func (c *cut) Write(p []byte) (int, error) {
	if c.after -= len(p); c.after < 0 {
		return len(p), nil
	}
	return c.to.Write(p)
}

func (w *trial) unpacked(from io.Reader) (note model.DownloadNote, files map[string][]byte) {
	w.Helper()
	files = map[string][]byte{}
	in := tar.NewReader(from)
	for n := 0; ; n++ {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		w.must(err)
		text, err := io.ReadAll(in)
		w.must(err)
		if n == 0 {
			w.must(json.Unmarshal(text, &note))
			continue
		}
		name, ok := strings.CutPrefix(header.Name, "data/")
		if !ok {
			w.Errorf("%q is in the archive", header.Name)
		}
		if header.Typeflag == tar.TypeReg {
			files[name] = text
		}
	}
	return note, files
}

const verifier = "SCRAM-SHA-256$"

func holds(files map[string][]byte, text string) (in []string) {
	for name, body := range files {
		if bytes.Contains(body, []byte(text)) {
			in = append(in, name)
		}
	}
	return in
}

// A download of a data directory is ended at each of its steps, and goes on.
func TestADownloadedDataDirectory(t *testing.T) {
	d := newSale(t)
	w := d.download("op-directory/1", model.Downloading{Form: model.DataDirectory})
	for n, step := range []string{foundFile, "restored", readyFile} {
		w.killed(step, n > 0)
	}
	note, files := w.fetched(true)
	if note.Form != model.DataDirectory || note.Major != pgversion.Major() || note.Superuser != "rdsadmin" || note.Files != len(files) || note.Files < 500 {
		t.Errorf("%d files, %+v", len(files), note)
	}
	if strings.Join(note.Databases, " ") != "a/b 'c' postgres shop" || strings.Join(note.Logins, " ") != "boss rdsadmin rdsmon" {
		t.Errorf("%+v", note)
	}
	if in := holds(files, verifier); len(in) > 0 {
		t.Errorf("verifiers of passwords are in %v", in)
	}
	for name, want := range map[string]bool{"PG_VERSION": true, "global/pg_control": true, "postgresql.conf": true, "backup_label": false, "postmaster.pid": false, "recovery.signal": false} {
		if _, has := files[name]; has != want {
			t.Errorf("%s: %v", name, has)
		}
	}
	for _, name := range []string{"postgresql.conf", "postgresql.auto.conf", "pg_hba.conf"} {
		if bytes.Contains(files[name], []byte("archive")) && name != "postgresql.conf" {
			t.Errorf("%s has\n%s", name, files[name])
		}
	}

	with := d.download("op-verifiers/1", model.Downloading{Form: model.DataDirectory, Verifiers: true})
	if _, files := with.fetched(false); len(holds(files, verifier)) == 0 {
		t.Error("no verifiers are there")
	}

	d.inPostgres("BEGIN; ALTER ROLE boss CREATEDB; PREPARE TRANSACTION 'role'")
	d.run(d.engine.Backup(d.place, backup.Take{Repository: "main", Kind: model.Incremental, Operation: "op-held"}))
	held := d.download("op-held/1", model.Downloading{Form: model.DataDirectory})
	if _, err := held.try(t.Context(), false); !job.IsFinal(err) || !strings.Contains(err.Error(), "--with-passwords") {
		t.Errorf("a transaction keeps verifiers: %v", err)
	}
}

// A dump is ended at each of its steps, and goes on.
func TestADownloadedDump(t *testing.T) {
	d := newSale(t, "CREATE TABLE public.held ()", "BEGIN; LOCK TABLE public.held; PREPARE TRANSACTION 'table'")
	w := d.download("op-dump/1", model.Downloading{Form: model.Dump})
	for n, step := range []string{foundFile, "restored", "dumped", readyFile} {
		w.killed(step, n > 0)
	}
	note, files := w.fetched(true)
	if note.Files != len(files) || len(note.Dirs) != 4 || note.Dirs["shop"] != "databases/shop" || note.Dirs["closed"] != "databases/closed" {
		t.Errorf("%+v", note)
	}
	for name, dir := range note.Dirs {
		if _, has := files[dir+"/toc.dat"]; !has {
			t.Errorf("%s has no contents in %s", name, dir)
		}
	}
	globals := string(files[model.GlobalsName])
	if !strings.Contains(globals, "CREATE ROLE boss") || strings.Contains(globals, verifier) {
		t.Errorf("the roles are\n%s", globals)
	}
	only := d.download("op-only/1", model.Downloading{Form: model.Dump, Only: "a/b 'c'", Verifiers: true})
	note, files = only.fetched(false)
	if len(note.Dirs) != 1 || !strings.Contains(string(files[model.GlobalsName]), verifier) {
		t.Errorf("%+v\n%s", note, files[model.GlobalsName])
	}
	none := d.download("op-none/1", model.Downloading{Form: model.Dump, Only: "nothing"})
	if _, err := none.try(t.Context(), false); !job.IsFinal(err) || !strings.Contains(err.Error(), "a/b 'c', closed, postgres, shop") {
		t.Errorf("a database that is not there: %v", err)
	}
}

// What somebody left among the files is not sent, whatever it is.
func TestOddFilesAreNotSent(t *testing.T) {
	dir := t.TempDir()
	o := newOffer(model.DownloadNote{}, nil, dir)
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.Send(t.Context(), io.Discard); err != nil {
		t.Error(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := o.Send(t.Context(), io.Discard); !errors.Is(err, errOdd) {
		t.Errorf("a link: %v", err)
	}
	if _, err := openPlain(nil, filepath.Join(dir, "link")); err == nil {
		t.Error("a link is followed")
	}
}

func TestDirectoriesOfDumps(t *testing.T) {
	for name, want := range map[string]string{
		"shop": "shop", "Shop-1.0": "Shop-1.0", "..": "1-..", "a/b": "1-a%2Fb", "": "1-", ".x": "1-.x", "ä": "1-%C3%A4", strings.Repeat("x", 200): "1-" + strings.Repeat("x", 100),
	} {
		if got := dirOf(name, 0); got != want || strings.Contains(got, "/") {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if a, b := dirOf("a/b", 0), dirOf("a/b", 1); a == b {
		t.Errorf("twice %s", a)
	}
}

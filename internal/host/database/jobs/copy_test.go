package jobs

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/pgbackrest"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/archive"
	"howdah/internal/host/job"
	"howdah/internal/host/proc"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/repository"
	model "howdah/internal/model/backup"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/repository/gateway"
	"howdah/internal/repository/store"
	"howdah/internal/system/owner"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
	"howdah/internal/testkit/s3test"
	"howdah/internal/testkit/sourcetest"
)

func TestTheWALThatABackupNeeds(t *testing.T) {
	const segment = 16 << 20
	for name, test := range map[string]struct {
		start, stop lsn.LSN
		timeline    int
		there       string
		wants       string
		missing     bool
	}{
		"one file":       {3*segment + 40, 3*segment + 99, 1, "2 3 4", "3", false},
		"three files":    {3*segment + 40, 5*segment + 1, 1, "2 3 4 5 6", "3 4 5", false},
		"to the end":     {3*segment + 40, 4 * segment, 1, "3", "3", false},
		"and the next":   {3*segment + 40, 4 * segment, 1, "3 4", "3 4", false},
		"a gap":          {3*segment + 40, 5*segment + 1, 1, "3 5", "3 5", true},
		"nothing":        {3*segment + 40, 5*segment + 1, 1, "", "", true},
		"later timeline": {3*segment + 40, 3*segment + 99, 2, "3", "3", false},
	} {
		n := newNeeded(model.Backup{StartLSN: test.start, StopLSN: test.stop, Timeline: test.timeline})
		var wanted []string
		for _, number := range strings.Fields(test.there) {
			if n.wants("00000001000000000000000" + number) {
				wanted = append(wanted, number)
			}
		}
		if _, missing := n.missing(); strings.Join(wanted, " ") != test.wants || missing != test.missing {
			t.Errorf("%s: wants %q, misses something: %v", name, wanted, missing)
		}
		for file, want := range map[string]bool{
			"00000003000000000000000000000003": false, "000000030000000000000003": false, "00000001.history": true, "00000002.history": test.timeline == 2,
			"00000009.history": false, "../../x": false, "": false,
		} {
			if n.wants(file) != want {
				t.Errorf("%s: wants %q: %v", name, file, !want)
			}
		}
	}
}

// watched is a store that tells what is written, and lets that fail.
type watched struct {
	store.Store
	mu    sync.Mutex
	wrote []string // guarded by mu
	at    func(key string) error
}

func (w *watched) Put(ctx context.Context, key string, body io.Reader) (store.Object, error) {
	w.mu.Lock()
	at := w.at
	w.mu.Unlock()
	if at != nil {
		if err := at(key); err != nil {
			return store.Object{}, err
		}
	}
	o, err := w.Store.Put(ctx, key, body)
	if err == nil {
		w.mu.Lock()
		w.wrote = append(w.wrote, key)
		w.mu.Unlock()
	}
	return o, err
}

// depot has a database that is backed up to the repository main, and the repository far.
type depot struct {
	*testing.T
	engine  pgbackrest.Engine
	server  *pgtest.Server
	user    *owner.User
	place   backup.Place
	gateway *gateway.Gateway
	addr    string
	ca      []byte
	caFile  string
	keys    map[string][]byte // by repository
	stores  map[string]*watched
	main    string // directory of main
	procs   *proc.Host
	jobs    string
}

const resource = "db-COPIED"

func newDepot(t *testing.T) *depot {
	t.Helper()
	engine, err := pgbackrest.Find()
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	dir := hometest.Dir(t)
	d := &depot{
		T: t, engine: engine, server: pgtest.Start(t, pgtest.Options{Settings: "archive_mode = always\narchive_timeout = 0\nmax_prepared_transactions = 5\n"}), user: sourcetest.PlainUser(t),
		keys: map[string][]byte{"main": repository.NewKey(), "far": repository.NewKey()}, main: filepath.Join(dir, "main"),
		caFile: filepath.Join(dir, "ca.crt"), jobs: filepath.Join(dir, "jobs"),
	}
	d.must(os.Mkdir(d.main, 0o700))
	main, err := store.OpenDirectory(d.main, "")
	d.must(err)
	s3 := s3test.Start(t)
	far, err := store.OpenS3(store.S3Config{Endpoint: s3.Endpoint, CA: s3.CA, Bucket: s3test.Bucket, AccessKey: s3test.AccessKey, Secret: s3test.Secret, Region: "us-east-1"})
	d.must(err)
	d.stores = map[string]*watched{"main": {Store: main}, "far": {Store: far}}
	d.gateway = gateway.New(gateway.Config{Log: slog.New(slog.DiscardHandler)})
	for name, s := range d.stores {
		d.gateway.SetRepository(name, s.Store)
	}
	d.serve()
	parent := strings.ToLower(filepath.Base(dir))
	d.procs, err = proc.Open(proc.Config{Parent: parent, StateDir: filepath.Join(dir, "groups")})
	d.must(err)
	t.Cleanup(func() { d.must(d.leaveNothing()) })
	d.backups()
	return d
}

// leaveNothing removes what an agent that ended in the middle has left running.
func (d *depot) leaveNothing() error {
	names, err := d.procs.Groups()
	errs := []error{err}
	for _, name := range names {
		group, err := d.procs.Group(name)
		if err == nil {
			_, err = group.Kill(context.Background())
		}
		if err == nil {
			err = group.Remove()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (d *depot) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// serve has the gateway listen.
func (d *depot) serve() {
	authority, err := certs.New("test")
	d.must(err)
	pair, err := authority.Issue(certs.Subject{CommonName: "agent:a", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"127.0.0.1"}})
	d.must(err)
	d.ca = pair.CAPEM
	d.must(os.WriteFile(d.caFile, pair.CAPEM, 0o644)) //nolint:gosec // the server's user reads it
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	d.must(err)
	server := d.gateway.Server()
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	listener, err := new(net.ListenConfig).Listen(d.Context(), "tcp", testkit.FreeAddr(d))
	d.must(err)
	d.addr = listener.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	d.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			d.Error(err)
		}
	})
}

// admit lets a holder into parts, as the host's keeper does.
func (d *depot) admit(_ context.Context, holder string, parts ...archive.Part) (all []backup.Access, err error) {
	var grants []gateway.Grant
	key := fmt.Sprintf("K%x", holder)
	for _, p := range parts {
		grants = append(grants, gateway.Grant{Repository: p.Repository, Database: p.Database, ReadOnly: p.ReadOnly})
		all = append(all, backup.Access{
			Name: p.Repository, Endpoint: "https://" + d.addr, Bucket: p.Repository, Key: key, Secret: "a secret", Path: "/" + p.Database,
			Passphrase: repository.Passphrase(d.keys[p.Repository], p.Database),
		})
	}
	d.gateway.SetKey(key, "a secret", grants)
	return all, nil
}

func (d *depot) host() *Host {
	return &Host{
		Engine: d.engine, Admit: d.admit, Dismiss: func(string) error { return nil },
		Store: func(name string) (store.Store, error) { return d.stores[name], nil },
		Give: func(dir string) (*owner.User, error) {
			if err := os.MkdirAll(dir, 0o700); err != nil || d.user == nil {
				return d.user, err
			}
			return d.user, os.Chown(dir, d.user.UID, d.user.GID)
		},
		CA: func() []byte { return d.ca }, Procs: d.procs, Log: slog.New(slog.DiscardHandler),
	}
}

// run runs a command as the user of the server.
func (d *depot) run(c backup.Command) []byte {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), c.Path, c.Args...)
	cmd.Dir, cmd.Env = "/", append([]string{"PATH=/usr/bin:/bin"}, c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.server.Credential()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
	return out
}

func (d *depot) dir(name string) string {
	d.Helper()
	dir := filepath.Join(filepath.Dir(d.server.DataDir()), name)
	d.must(os.Mkdir(dir, 0o700))
	d.server.Give(dir)
	return dir
}

func (d *depot) write(p backup.Place) {
	d.Helper()
	for _, f := range d.engine.Files(p) {
		d.must(os.WriteFile(f.Path, f.Data, f.Mode))
		d.server.Give(f.Path)
	}
}

// backups makes a full backup, and an incremental one.
func (d *depot) backups() {
	d.Helper()
	access, err := d.admit(d.Context(), "member", archive.Part{Database: resource, Repository: "main"})
	d.must(err)
	access[0].CAFile = d.caFile
	d.place = backup.Place{
		Database: resource, Dir: d.dir("backup"), DataDir: d.server.DataDir(), SocketDir: filepath.Dir(d.server.DataDir()), Port: int(d.server.Config().Port),
		User: d.server.User, DBName: d.server.Database, Repositories: access,
	}
	d.write(d.place)
	d.server.Exec("ALTER SYSTEM SET archive_command = '" + strings.ReplaceAll(d.engine.ArchiveCommand(d.place), "'", "''") + "'")
	d.server.Exec("SELECT pg_reload_conf()")
	for _, c := range d.engine.Create(d.place) {
		d.run(c)
	}
	for n, kind := range []model.Kind{model.Full, model.Incremental} {
		d.server.Exec(fmt.Sprintf("CREATE TABLE kept_%d AS SELECT generate_series(1, 1000) AS n", n))
		d.run(d.engine.Backup(d.place, backup.Take{Repository: "main", Kind: kind, Operation: fmt.Sprintf("op-%d", n)}))
	}
}

// newest is the record of the incremental backup.
func (d *depot) newest() model.Backup {
	d.Helper()
	listing, err := d.engine.ParseList(d.run(d.engine.List(d.place, "main")))
	d.must(err)
	return record(model.BackupJob{Database: resource, Repository: "main"}, listing.Backups[len(listing.Backups)-1])
}

// copies asks for a copy. ctx ends as the agent does.
func (d *depot) copies(ctx context.Context, part string, resume bool, change func(*model.CopyJob)) (model.Copied, member.JobReport, error) {
	d.Helper()
	args := model.CopyJob{
		Database: part, Repository: "far", Source: model.PartRef{Database: resource, Repository: "main"}, Backup: d.newest(), MaxBytes: 1 << 30,
		Note: model.CopyNote{Snapshot: model.Snapshot{Name: "kept"}, Backup: model.Backup{Database: part, Repository: "far"}},
	}
	if change != nil {
		change(&args)
	}
	text, err := json.Marshal(args)
	d.must(err)
	h := d.host()
	kind := job.Kind{Name: model.JobCopy, Run: h.copy}
	result, report, err := job.Try(ctx, kind, member.Job{Name: "op-" + part + "/1", Host: "a", Kind: model.JobCopy, Args: text}, job.Trial{
		Dir: d.jobs, Procs: d.procs, Resume: resume, Log: slog.New(slog.DiscardHandler),
	})
	var done model.Copied
	if err == nil {
		d.must(json.Unmarshal(result, &done))
	}
	return done, report, err
}

// A copy is ended at each of its steps, and goes on. Then it stands by itself.
func TestACopyStandsByItself(t *testing.T) {
	d := newDepot(t)
	d.refuses()
	const part = "copy-1"
	far := d.stores["far"]
	resume := false
	for _, step := range []string{"archive/" + part + "/", "/backup.manifest", "archive.info", "backup.info", model.NoteKey} {
		ctx, cancel := context.WithCancel(t.Context())
		far.mu.Lock()
		far.at = func(key string) error {
			if strings.Contains(key, step) {
				cancel()
				return ctx.Err()
			}
			return nil
		}
		far.mu.Unlock()
		if _, _, err := d.copies(ctx, part, resume, nil); err == nil {
			t.Fatalf("%s: the copy did not end", step)
		}
		cancel()
		resume = true
		if d.has("far", part+"/"+model.NoteKey) {
			t.Errorf("%s: a copy that is not whole has a note", step)
		}
	}
	far.mu.Lock()
	far.at = nil
	far.mu.Unlock()
	done, report, err := d.copies(t.Context(), part, true, nil)
	if err != nil || done.Stored == 0 || report.Done != report.Of || report.Of != done.Stored {
		t.Fatalf("copied %+v, %+v: %v", done, report, err)
	}
	times := map[string]int{}
	for _, key := range far.wrote {
		if times[key]++; times[key] > 1 && !strings.Contains(key, ".info") {
			t.Errorf("%s was copied %d times", key, times[key])
		}
		if !strings.HasPrefix(key, part+"/") || strings.Contains(key, "passwd") {
			t.Errorf("%s was written", key)
		}
	}
	d.must(os.RemoveAll(d.main))
	d.gateway.RemoveRepository("main")
	delete(d.keys, "main")
	if got := d.restored("far", part, "SELECT count(*)::text FROM kept_1"); got != "1000" {
		t.Errorf("restored: %q", got)
	}
}

func (d *depot) has(repository, key string) bool {
	_, err := d.stores[repository].Head(d.Context(), key)
	return err == nil
}

// restored restores the newest backup of a part, and asks something of it.
func (d *depot) restored(repositoryName, part, query string) string {
	d.Helper()
	install, err := postgres.Find(pgversion.Major())
	d.must(err)
	access, err := d.admit(d.Context(), "restore", archive.Part{Database: part, Repository: repositoryName, ReadOnly: true})
	d.must(err)
	access[0].CAFile = d.caFile
	place := d.place
	place.Database, place.Repositories, place.Dir, place.DataDir = part, access, d.dir("origin-"+part), d.dir("data-"+part)
	d.write(place)
	listing, err := d.engine.ParseList(d.run(d.engine.List(place, repositoryName)))
	d.must(err)
	if len(listing.Backups) != 2 {
		d.Fatalf("the copy lists %+v", listing.Backups)
	}
	from := backup.Restore{Repository: repositoryName, Label: listing.Backups[1].Label}
	d.run(d.engine.Restore(place, from))
	recovery := d.engine.Recovery(place, from)
	signal := filepath.Join(place.DataDir, recovery.Signal)
	d.must(os.WriteFile(signal, nil, 0o600))
	d.server.Give(signal)
	socket := d.dir("socket-" + part)
	args := []string{"-D", place.DataDir, "-c", "listen_addresses=", "-c", "unix_socket_directories=" + socket, "-c", "archive_mode=off", "-p", fmt.Sprint(place.Port)}
	for name, value := range recovery.Settings {
		args = append(args, "-c", name+"="+value)
	}
	cmd := exec.CommandContext(context.WithoutCancel(d.Context()), install.Program("postgres"), args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.server.Credential(), Pdeathsig: syscall.SIGQUIT}
	testkit.Start(d, cmd)
	d.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGQUIT); _ = cmd.Wait() })
	config := d.server.Config()
	config.Host = socket
	var got string
	testkit.Eventually(d, time.Minute, func() error {
		conn, err := pgx.ConnectConfig(d.Context(), config)
		if err != nil {
			return err
		}
		defer conn.Close(context.Background())
		return conn.QueryRow(d.Context(), query).Scan(&got)
	})
	return got
}

// refuses has copies refused. Whoever owns the database writes what he likes into its part of the
// first repository.
func (d *depot) refuses() {
	d.Helper()
	far, b, n := d.stores["far"], d.newest(), 0
	refused := func(words string, change func(*model.CopyJob)) {
		d.Helper()
		n++
		part := fmt.Sprintf("copy-refused-%d", n)
		_, _, err := d.copies(d.Context(), part, false, func(j *model.CopyJob) { j.Backup = b; change(j) })
		if !job.IsFinal(err) || !strings.Contains(err.Error(), words) {
			d.Errorf("%s: %v", words, err)
		}
		if d.has("far", part+"/"+model.NoteKey) || slices.ContainsFunc(far.wrote, func(key string) bool { return !strings.HasPrefix(key, part+"/") }) {
			d.Errorf("%s: written: %q", words, far.wrote)
		}
		far.wrote = nil
	}
	refused("more than", func(j *model.CopyJob) { j.MaxBytes = 1000 })
	refused("the WAL that makes it consistent", func(j *model.CopyJob) { j.Backup.StopLSN += 64 << 20 })
	refused("not the backup that was asked for", func(j *model.CopyJob) { j.Backup.StopLSN++ })
	part := filepath.Join(d.main, resource)
	spoilt := func(words, path string, spoil func(text []byte) []byte) {
		d.Helper()
		old, err := os.ReadFile(path)
		d.must(err)
		d.must(os.WriteFile(path, spoil(slices.Clone(old)), 0o600))
		refused(words, func(*model.CopyJob) {})
		d.must(os.WriteFile(path, old, 0o600))
	}
	spoilt("does not open", filepath.Join(part, "backup", resource, "backup.info"), func([]byte) []byte { return []byte("[backrest]\n") })
	bundle := filepath.Join(part, "backup", resource, b.Needs[0], "bundle", "1")
	spoilt("is damaged in the repository main", bundle, func(text []byte) []byte { text[len(text)/2] ^= 1; return text })
	d.must(os.Symlink("/etc/passwd", filepath.Join(part, "backup", resource, b.Label, "passwd")))
}

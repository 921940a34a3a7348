package restore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/osuser"
	"howdah/internal/host/pace"
	"howdah/internal/host/tree"
	"howdah/internal/model/lsn"
	"howdah/internal/system/plainfile"
)

// askWithin is how long the server may take to say where it is after recovery.
const askWithin = 5 * time.Minute

// replay has a private server replay WAL, and end recovery at the target.
func (w *work) replay(ctx context.Context) error {
	began := time.Now()
	if w.state.Timeline == 0 {
		if err := w.chooseTimeline(ctx); err != nil {
			return err
		}
	}
	reached, err := w.recover(ctx)
	if err != nil {
		return err
	}
	if err := w.at("stopped"); err != nil {
		return err
	}
	w.state.Result.EndLSN, w.state.Result.Timeline, w.state.Result.LastCommit = reached.end, reached.timeline, reached.commit
	w.state.Result.Replay = time.Since(began)
	if err := errors.Join(w.checkBranch(ctx, reached), w.reachedAll(reached)); err != nil {
		return err
	}
	if err := tree.Sync(w.Dir); err != nil {
		return err
	}
	return w.enter(ending)
}

// reached is where recovery ended.
type reached struct {
	end      lsn.LSN
	timeline int // the new one
	commit   time.Time
}

// recover starts the server, waits until it takes writes, and stops it.
func (w *work) recover(ctx context.Context) (reached, error) {
	if err := w.configure(ctx); err != nil {
		return reached{}, err
	}
	log := w.path(logFile)
	before := w.readBefore(log)
	p, err := w.start(ctx, log, w.Install.Program("postgres"),
		[]string{"-D", w.part(), "-c", "config_file=" + filepath.Join(w.path(confDir), mainConf)}, nil)
	if err != nil {
		return reached{}, err
	}
	defer p.close()
	if err := w.at("replaying"); err != nil {
		return reached{}, err
	}
	seen := replayLog{from: w.state.Start, target: w.Source.Target.LSN}
	exit, err := p.await(ctx, func(line string) error {
		if news := seen.read(line); news {
			w.tell("wal", seen.done(), seen.of())
		}
		if seen.open {
			return errOpen
		}
		return nil
	})
	if err == nil {
		return w.failed(ctx, seen, p.out.all.String(), exit)
	}
	if !errors.Is(err, errOpen) {
		return reached{}, err
	}
	if (w.Source.Target.Newest || w.state.Exhaust) && w.Live == nil {
		// The server ended where it took WAL to end.
		if err := w.checkWAL(ctx, append(before.files, seen.files...)); err != nil {
			return reached{}, err
		}
	}
	at := reached{commit: seen.commit, end: seen.end}
	if !seen.complete { // recovery had ended, and then the server was killed
		at.commit, at.end = w.state.Result.LastCommit, w.state.Result.EndLSN
	}
	if !seen.complete && before.complete {
		at.commit, at.end = before.commit, before.end
	}
	w.state.Result.EndLSN, w.state.Result.LastCommit = at.end, at.commit
	if err := errors.Join(w.enter(replaying), w.at("open")); err != nil {
		return reached{}, err
	}
	if err := w.inServer(ctx, p, &at); err != nil {
		return reached{}, err
	}
	if err := w.at("stopping"); err != nil {
		return reached{}, err
	}
	if err := p.stop(ctx, w.Procs); err != nil {
		return reached{}, err
	}
	// Functions of users may have left programs behind, which would exchange files from now on.
	if _, err := w.Group.Kill(ctx); err != nil {
		return reached{}, fmt.Errorf("end what the server that replayed WAL left: %w", err)
	}
	control, err := postgres.ReadControl(w.part())
	if err == nil && control.State != postgres.ShutDown {
		err = fmt.Errorf("the server that replayed WAL was not stopped in good order: it is %s", control.State)
	}
	return at, err
}

// readBefore reads the log of a server that was killed.
func (w *work) readBefore(log string) (before replayLog) {
	var text []byte
	err := w.User.Do(func() (err error) {
		text, err = plainfile.Tail(log, mostOutput)
		return err
	})
	if err == nil {
		for line := range strings.Lines(string(text)) {
			before.read(strings.TrimSuffix(line, "\n"))
		}
	}
	return before
}

// errOpen says that the server takes writes.
var errOpen = errors.New("it takes connections")

// inServer does what is to be done in the server, and asks it where it is.
func (w *work) inServer(ctx context.Context, p *program, at *reached) error {
	conn, err := w.ask(ctx, p, at)
	if conn != nil {
		defer conn.Close(context.WithoutCancel(ctx))
	}
	if err != nil || w.Finish == nil {
		return err
	}
	return w.Finish(ctx, conn)
}

// ask asks the server where it is. It returns the connection, also with an error if there is one.
func (w *work) ask(ctx context.Context, p *program, at *reached) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	conn, err := w.connect(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("ask the server that replayed WAL: %w", err)
	}
	var recovers bool
	var now string
	const sql = `SELECT pg_is_in_recovery(), pg_current_wal_insert_lsn()::text, ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int`
	if err := conn.QueryRow(ctx, sql).Scan(&recovers, &now, &at.timeline); err != nil {
		return conn, fmt.Errorf("ask the server that replayed WAL: %w", err)
	}
	if recovers {
		return conn, fmt.Errorf("the server that replayed WAL still recovers") //nolint:err113 // nobody tells it apart
	}
	if at.end == 0 { // it had ended before the server was killed
		at.end, err = lsn.Parse(now)
	}
	return conn, err
}

// connect logs in to the server, as long as that runs.
func (w *work) connect(ctx context.Context, p *program) (*pgx.Conn, error) {
	for {
		conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s dbname=%s connect_timeout=10", w.SocketDir, w.Port, w.Superuser, w.DBName))
		if err == nil || !w.Procs.Alive(p.process) || !pace.Sleep(ctx, readEvery) {
			return conn, err
		}
	}
}

// configure writes the private server's configuration. It listens on a private socket only, runs
// nothing of its own, and archives nothing. What it writes is made safe as a whole afterwards, so
// it need not wait for the disk: see state.Boot.
func (w *work) configure(ctx context.Context) error {
	control, err := postgres.ControlSettings(ctx, w.Install, w.User, w.part())
	if err != nil {
		return err
	}
	all := map[string]string{
		"listen_addresses": "", "unix_socket_directories": w.SocketDir, "port": strconv.Itoa(w.Port), "unix_socket_permissions": "0700",
		"fsync": "off", "archive_mode": "off", "hot_standby": "off", "wal_level": "replica", "autovacuum": "off", "jit": "off",
		"max_logical_replication_workers": "0", "restart_after_crash": "off", "ssl": "off",
		"log_startup_progress_interval": "1s", "log_line_prefix": "", "log_timezone": "UTC", "timezone": "UTC", "lc_messages": "C",
		"hba_file": filepath.Join(w.path(confDir), hbaConf), "ident_file": filepath.Join(w.path(confDir), identConf),
		"allow_in_place_tablespaces": "on", // those of users are
		"checkpoint_timeout":         "30min", "max_wal_size": "2GB",
	}
	maps.Copy(all, w.Settings)
	if w.Install.Major >= 17 {
		// A trigger of a user that follows a login would run with the rights of whoever logs in here.
		all["event_triggers"] = "off"
	}
	// What the source's transactions need of the server that takes them over.
	for _, name := range []string{"max_connections", "max_locks_per_transaction", "max_worker_processes", "max_wal_senders", "track_commit_timestamp"} {
		if value := control[name]; value != "" {
			all[name] = value
		}
	}
	all["max_prepared_transactions"] = strconv.Itoa(max(prepared, number(control["max_prepared_xacts"])))
	recovery := w.recovery()
	maps.Copy(all, recovery.Settings)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(all[name], "'", "''"))
	}
	idents := "here " + osuser.Current() + " " + w.Superuser + "\n"
	if w.LetUser && w.User != nil {
		idents += "here " + w.User.Name + " " + w.Superuser + "\n"
	}
	files := map[string]string{mainConf: text.String(), hbaConf: "local all " + w.Superuser + " peer map=here\n", identConf: idents}
	return w.User.Do(func() error {
		// A program of an earlier try may have left a pipe where a file is to be.
		if err := errors.Join(os.RemoveAll(w.path(confDir)), os.Mkdir(w.path(confDir), 0o700)); err != nil {
			return err
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(w.path(confDir), name), []byte(text), 0o600); err != nil {
				return err
			}
		}
		return w.signal(recovery.Signal)
	})
}

// prepared is how many prepared transactions there may be at least. They may have become more while
// the WAL was written.
const prepared = 1000

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// signal makes the file that has the server recover from the archive. Recovery has ended when the newest
// checkpoint is of a timeline beyond the one that is followed. The server removes the file before that
// checkpoint. If it is killed between the two, its next start would replay all WAL that it has, also what
// lies behind the target.
func (w *work) signal(name string) error {
	control, err := postgres.ReadControl(w.part())
	if err != nil {
		return err
	}
	if !tree.Exists(filepath.Join(w.part(), "backup_label")) && control.Timeline > w.state.Timeline {
		return nil
	}
	return plainfile.Replace(filepath.Join(w.part(), name), nil, 0o600)
}

// Lines of the server's log, which has no prefix. LSNs are as "16/B374D848".
var (
	redoForm   = regexp.MustCompile(`^LOG:  redo in progress, .* current LSN: ([0-9A-F]+/[0-9A-F]+)`)
	beginForm  = regexp.MustCompile(`^LOG:  redo starts at ([0-9A-F]+/[0-9A-F]+)`)
	doneForm   = regexp.MustCompile(`^LOG:  redo done at ([0-9A-F]+/[0-9A-F]+)`)
	commitForm = regexp.MustCompile(`^LOG:  last completed transaction was at log time (.+)$`)
	fileForm   = regexp.MustCompile(`^LOG:  restored log file "([0-9A-F]{24})" from archive`)
	fatalForm  = regexp.MustCompile(`^(?:FATAL|PANIC):  (.+)$`)
)

// mostFatal is how many fatal lines are kept: the first ones say why.
const mostFatal = 100

// replayLog is what the log of the server says.
type replayLog struct {
	from   string
	target lsn.LSN
	start  lsn.LSN
	at     lsn.LSN
	end    lsn.LSN
	commit time.Time
	last   string   // file of WAL that was replayed last
	files  []string // the last two of them
	fatal  []string
	// complete says that recovery ended at its target, and open that the server takes writes.
	complete bool
	open     bool
}

// read reads a line, and reports whether it says how far the replay is.
func (l *replayLog) read(line string) (news bool) {
	position := func(form *regexp.Regexp, to *lsn.LSN) bool {
		found := form.FindStringSubmatch(line)
		if found == nil {
			return false
		}
		at, err := lsn.Parse(found[1])
		if err == nil {
			*to = at
		}
		return err == nil
	}
	switch {
	case position(redoForm, &l.at):
		return true
	case position(beginForm, &l.start), position(doneForm, &l.end):
	case strings.HasPrefix(line, "LOG:  archive recovery complete"):
		l.complete = true
	case strings.HasPrefix(line, "LOG:  database system is ready to accept connections"):
		l.open = true
	}
	if found := commitForm.FindStringSubmatch(line); found != nil {
		if at, err := time.Parse("2006-01-02 15:04:05.999999-07", found[1]); err == nil {
			l.commit = at.UTC()
		}
	}
	if found := fileForm.FindStringSubmatch(line); found != nil {
		if l.last != found[1] {
			l.files = append(l.files[max(0, len(l.files)-1):], found[1])
		}
		l.last = found[1]
	}
	if found := fatalForm.FindStringSubmatch(line); found != nil && len(l.fatal) < mostFatal {
		l.fatal = append(l.fatal, found[1])
	}
	return false
}

// done returns how many bytes of WAL were replayed, and of how many there are: 0 if nobody knows.
func (l *replayLog) done() int64 { return int64(max(l.at, l.start) - l.start) }

func (l *replayLog) of() int64 {
	if l.target <= l.start {
		return 0
	}
	return int64(l.target - l.start)
}

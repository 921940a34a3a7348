package restore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/tree"
	"howdah/internal/model/lsn"
	"howdah/internal/system/owner"
	"howdah/internal/testkit"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/loopdisk"
	"howdah/internal/testkit/sourcetest"
)

// live asks for a clone of the source as it runs, into a directory of another user's below dir; "":
// anywhere else.
func (s source) live(t testing.TB, dir string) Request {
	t.Helper()
	r := s.request(t, backup.Restore{Label: "of the test"})
	if s.User != nil {
		r.User = &owner.User{Name: "clone", UID: 40009, GID: 40009}
	}
	if dir == "" {
		dir = filepath.Dir(filepath.Dir(r.Dir))
	}
	above := filepath.Join(dir, "c")
	r.Dir = filepath.Join(above, "restore")
	s.Must(r.User.GiveDir(above))
	r.SocketDir = above
	r.Live = &Live{
		Name: "db-1.m1", DataDir: s.Data, User: s.User, Connect: s.Connect,
		Reach: flushedNow,
	}
	return r
}

// flushedNow is up to where the WAL of a primary is safe.
func flushedNow(ctx context.Context, conn *pgx.Conn) (to Point, err error) {
	var text string
	if err := conn.QueryRow(ctx, "SELECT "+timelineSQL+", pg_current_wal_flush_lsn()::text").Scan(&to.Timeline, &text); err != nil {
		return to, err
	}
	to.At, err = lsn.Parse(text)
	return to, err
}

// opened starts a server on what was cloned, and returns how to connect to it.
func (s source) opened(t testing.TB, r Request) *pgx.ConnConfig {
	t.Helper()
	data := DataDir(r.Dir)
	s.Must(r.User.ReplaceFile(filepath.Join(data, "pg_hba.conf"), []byte("local all all trust\n"), 0o600))
	other := *s.Source
	other.User = r.User
	cmd := other.Server("-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories="+r.SocketDir, "-c", "port=5432", "-c", "fsync=off")
	log, err := os.Create(filepath.Join(filepath.Dir(s.Dir), fmt.Sprintf("clone-%d.log", time.Now().UnixNano())))
	s.Must(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	testkit.Start(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	config, err := pgx.ParseConfig("host=" + r.SocketDir + " port=5432 user=rdsadmin dbname=rdsadmin")
	s.Must(err)
	testkit.Eventually(t, time.Minute, func() error {
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			return err
		}
		return conn.Close(t.Context())
	})
	return config
}

func (s source) has(t testing.TB, config *pgx.ConnConfig, sql string) (value int64) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	s.Must(err)
	defer conn.Close(t.Context())
	s.Must(conn.QueryRow(t.Context(), sql).Scan(&value))
	return value
}

// amcheck reads all of a server.
func (s source) amcheck(t testing.TB, r Request) {
	t.Helper()
	other := *s.Source
	other.User = r.User
	out, err := other.Command(s.Install.Program("pg_amcheck"), "--host="+r.SocketDir, "--username=rdsadmin", "--all", "--install-missing", "--heapallindexed").CombinedOutput()
	if err != nil {
		t.Errorf("amcheck: %v\n%s", err, out)
	}
}

// writes has rows written all the time, and others updated, until the test ends.
func (s source) writes(t testing.TB) *ack.Load {
	t.Helper()
	config, err := pgx.ParseConfig("host=" + filepath.Join(s.Dir, "socket") + " port=5432 user=rdsadmin dbname=rdsadmin")
	s.Must(err)
	load := &ack.Load{Config: config, Table: "public.acks", Writers: 4, Pause: time.Millisecond}
	s.Must(load.Prepare(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() {
		load.Run(ctx)
		done <- struct{}{}
	}()
	go func() { // pages are torn, files grow and shrink, and come and go
		defer func() { done <- struct{}{} }()
		conn, err := s.Connect(ctx)
		for n := 0; err == nil; n++ {
			for _, sql := range []string{
				fmt.Sprintf("UPDATE public.much SET x = x || '.' WHERE i %% 50 = %d", n%50),
				fmt.Sprintf("CREATE TABLE public.come_%d AS SELECT generate_series(1, 5000) i", n), fmt.Sprintf("DROP TABLE IF EXISTS public.come_%d", n-3),
				"VACUUM public.much", "TRUNCATE public.emptied", "INSERT INTO public.unlogged SELECT generate_series(1, 100)",
			} {
				if _, err = conn.Exec(ctx, sql); err != nil {
					break
				}
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		<-done
	})
	testkit.Eventually(t, time.Minute, func() error {
		if len(load.Acks()) < 100 {
			return errors.New("few rows are written")
		}
		return nil
	})
	return load
}

const muchData = `CREATE TABLE public.much AS SELECT i, repeat('x', 200) x FROM generate_series(1, 20000) i;
	CREATE INDEX ON public.much (x); CREATE TABLE public.emptied (i int); CREATE UNLOGGED TABLE public.unlogged (i int PRIMARY KEY);
	ALTER TABLE public.unlogged DROP CONSTRAINT unlogged_pkey; INSERT INTO public.unlogged SELECT generate_series(1, 5000)`

// TestCloneUnderLoad: a clone has every row that was acknowledged before it was asked for, is whole,
// and has nothing to do with its source from then on.
func TestCloneUnderLoad(t *testing.T) {
	t.Parallel()
	disk := loopdisk.NewXFS(t, "1200")
	s := source{sourcetest.NewIn(t, disk.Dir)}
	s.Exec(muchData)
	load := s.writes(t)
	for _, tt := range []struct {
		name, dir string
		thin      bool
	}{{"thin", disk.Dir, true}, {"full", "", false}} {
		t.Run(tt.name, func(t *testing.T) {
			before := load.Acks()
			r := s.live(t, tt.dir)
			began := time.Now()
			result, err := Restore(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %s, %+v", tt.name, time.Since(began), result)
			if result.Bytes == 0 || (result.Shared == result.Bytes) != tt.thin || (result.Shared == 0) == tt.thin {
				t.Errorf("it shares %d of %d bytes", result.Shared, result.Bytes)
			}
			s.checkOwned(t, r)
			config := s.opened(t, r)
			missing, err := ack.Missing(t.Context(), config, load.Table, before)
			if err != nil || len(missing) > 0 {
				t.Errorf("of %d rows that were acknowledged before, %d are missing: %v", len(before), len(missing), err)
			}
			s.amcheck(t, r)
			if n := s.has(t, config, "SELECT count(*) FROM public.unlogged"); n != 0 {
				t.Errorf("a table that is not logged has %d rows", n)
			}
			s.has(t, config, "WITH new AS (UPDATE public.much SET x = 'of the clone' RETURNING i) SELECT count(*) FROM new")
			if n := sourcetest.Ask[int64](s.Source, "SELECT count(*) FROM public.much WHERE x = 'of the clone'"); n != 0 {
				t.Errorf("the source has %d rows of the clone", n)
			}
			if n := s.has(t, config, "SELECT count(*) FROM public.much WHERE x <> 'of the clone'"); n != 0 {
				t.Errorf("the clone has %d rows that it changed", n)
			}
		})
	}
	testkit.Eventually(t, time.Minute, func() error {
		if n := sourcetest.Ask[int64](s.Source, "SELECT count(*) FROM pg_replication_slots"); n != 0 {
			return fmt.Errorf("the source has %d slots", n)
		}
		return nil
	})
}

func identifier(data string) (uint64, error) {
	control, err := postgres.ReadControl(data)
	return control.SystemID, err
}

// checkOwned checks that all of a clone is its own user's, and nobody else's to read.
func (s source) checkOwned(t testing.TB, r Request) {
	t.Helper()
	was, err := identifier(s.Data)
	s.Must(err)
	is, err := identifier(DataDir(r.Dir))
	s.Must(err)
	if was == is {
		t.Error("it has its source's system identifier")
	}
	err = filepath.WalkDir(DataDir(r.Dir), func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		of, err := owner.Of(path)
		if err != nil || r.User != nil && (of == nil || of.UID != r.User.UID) {
			t.Errorf("%s belongs to %+v, %v", path, of, err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	s.Must(err)
}

// liveSteps are the places where a clone may be killed, before it is replayed as a restore is.
var liveSteps = []string{"near", "begun", "copied data", "copied", "ended", "copied wal", "scrubbed"}

// TestCloneKilledAtEachStep: each next one goes on, or begins anew, and nothing is left in the source.
func TestCloneKilledAtEachStep(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Keep("a")
	r := s.live(t, "")
	steps := append(slices.Clone(liveSteps), "replaying", "open", "stopping", "stopped", "plain", "renewed", "renamed")
	died := map[string]bool{}
	for range 2 * len(steps) {
		last := ""
		_, err := restore(t.Context(), r, func(at string) error {
			if died[at] {
				return nil
			}
			died[at], last = true, at
			return errKilled
		})
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if _, err := os.Stat(DataDir(r.Dir)); last != "" && (err == nil) != (last == "renamed") {
			t.Errorf("killed at %s, data are there: %v", last, err)
		}
	}
	for _, step := range steps {
		if !died[step] {
			t.Errorf("it was not killed at %s", step)
		}
	}
	s.checkOwned(t, r)
	if n := s.has(t, s.opened(t, r), "SELECT count(*) FROM public.kept"); n != 1 {
		t.Errorf("it has %d rows", n)
	}
	if n := sourcetest.Ask[int64](s.Source, "SELECT count(*) FROM pg_replication_slots"); n != 0 {
		t.Errorf("the source has %d slots", n)
	}
}

// TestCloneOfStrangeData: what a source's user has put there leads nowhere.
func TestCloneOfStrangeData(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	for name, plant := range map[string]func(path string) error{
		"a link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
		"a hard link": func(path string) error { return os.Link(filepath.Join(s.Data, "PG_VERSION"), path) },
		"a large one": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(s.Data, "base", "odd")
			s.Must(s.User.Do(func() error { return plant(path) }))
			defer os.Remove(path)
			r := s.live(t, "")
			_, err := Restore(t.Context(), r)
			if !Final(err) || tree.Exists(DataDir(r.Dir)) {
				t.Errorf("it was cloned: %v", err)
			}
		})
	}
	// A file with a hole takes no room of its user's, and its copy would take the host's.
	for _, name := range []string{"PG_VERSION", "pg_wal/00000001.history"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(s.Data, name)
			was, err := os.ReadFile(path)
			if err != nil {
				was = []byte("\n")
			}
			s.Must(s.User.Do(func() error { return errors.Join(os.WriteFile(path, was, 0o600), os.Truncate(path, 64<<20)) }))
			defer func() { s.Must(os.Truncate(path, int64(len(was)))) }()
			r := s.live(t, "")
			if _, err := Restore(t.Context(), r); !Final(err) || !strings.Contains(err.Error(), "larger than it may be") {
				t.Errorf("it was cloned: %v", err)
			}
		})
	}
}

// TestCloneWithoutRoom copies nothing.
func TestCloneWithoutRoom(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	disk := loopdisk.New(t, "80")
	r := s.live(t, disk.Dir)
	if _, err := Restore(t.Context(), r); !errors.Is(err, ErrNoRoom) || Final(err) || !strings.Contains(err.Error(), "MiB free") {
		t.Errorf("error %v", err)
	}
	if entries, err := os.ReadDir(r.Dir); err != nil || len(entries) > 4 {
		t.Errorf("it has %v, %v", entries, err)
	}
}

// TestCloneOfAStandby: it has what its primary had acknowledged before. A standby that has followed a
// promotion has WAL of two timelines.
func TestCloneOfAStandby(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Exec(muchData)
	second := s.Standby("second", "")
	third := s.Standby("third", second.Dir)
	// Nothing is acknowledged that the failover below could lose.
	s.Exec("ALTER SYSTEM SET synchronous_standby_names = '*'")
	s.Exec("SELECT pg_reload_conf()")
	testkit.Eventually(t, time.Minute, func() error {
		if n := sourcetest.Ask[int64](s.Source, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"); n != 1 {
			return fmt.Errorf("%d standbys are in sync", n)
		}
		return nil
	})
	load := s.writes(t)
	clone := func(name string, of, primary *sourcetest.Source) {
		t.Run(name, func(t *testing.T) {
			before := load.Acks()
			r := s.live(t, "")
			r.Live.DataDir, r.Live.Connect = of.Data, of.Connect
			r.Live.Reach = func(ctx context.Context, _ *pgx.Conn) (Point, error) {
				conn, err := primary.Connect(ctx)
				if err != nil {
					return Point{}, err
				}
				defer conn.Close(ctx)
				return flushedNow(ctx, conn)
			}
			if _, err := Restore(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			missing, err := ack.Missing(t.Context(), s.opened(t, r), load.Table, before)
			if err != nil || len(before) == 0 || len(missing) > 0 {
				t.Errorf("of %d rows that were acknowledged before, %d are missing: %v", len(before), len(missing), err)
			}
			s.amcheck(t, r)
		})
	}
	clone("a standby", second, s.Source)
	s.Kill()
	second.Exec("SELECT pg_promote()")
	config, err := pgx.ParseConfig("host=" + filepath.Join(second.Dir, "socket") + " port=5432 user=rdsadmin dbname=rdsadmin")
	s.Must(err)
	load.Turn(config)
	n := len(load.Acks())
	testkit.Eventually(t, time.Minute, func() error {
		if len(load.Acks()) < n+100 {
			return errors.New("few rows are written to the new primary")
		}
		return nil
	})
	clone("a standby that follows a promoted one", third, second)
	clone("a primary that was promoted", second, second)
}

// TestAStandbyOfAReplacedPrimaryLacksWhatIsAcknowledged: it follows a primary that was cut off, and that
// writes on. Its position is beyond that of the new primary, and it has nothing of that one.
func TestAStandbyOfAReplacedPrimaryLacksWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	second, third := s.Standby("second", ""), s.Standby("third", "")
	second.Exec("SELECT pg_promote()")
	second.Exec("INSERT INTO public.kept VALUES ('acknowledged')")
	lacks := func(of, primary *sourcetest.Source) string {
		t.Helper()
		conn, err := of.Connect(t.Context())
		s.Must(err)
		defer conn.Close(t.Context())
		leads, err := primary.Connect(t.Context())
		s.Must(err)
		defer leads.Close(t.Context())
		to, err := flushedNow(t.Context(), leads)
		s.Must(err)
		b := &base{conn: conn, reach: to.At, branch: to.Timeline}
		says, err := b.lacks(t.Context())
		s.Must(err)
		return says
	}
	for range 3 { // whatever begins a timeline writes
		s.Exec("SELECT pg_switch_wal()")
		s.Exec("INSERT INTO public.kept VALUES ('nobody knows of it')")
	}
	testkit.Eventually(t, time.Minute, func() error {
		if says := lacks(third, s.Source); says != "" {
			return errors.New(says)
		}
		return nil
	})
	if says := lacks(third, second); !strings.Contains(says, "follows timeline 1, and 2 is") {
		t.Errorf("it says %q", says)
	}
	if says := lacks(second, second); says != "" {
		t.Errorf("the new primary %s", says)
	}
}

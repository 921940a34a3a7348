package pgbackrest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/testkit/patience"
)

// runScript runs a script with a program that stands for pgBackRest, in a data directory.
func runScript(t *testing.T, program, name string, args []string, files map[string]string) (exit int) {
	t.Helper()
	return runCapped(t, 0, program, name, args, files)
}

// runCapped does so where this many bytes may wait.
func runCapped(t *testing.T, limit int64, program, name string, args []string, files map[string]string) (exit int) {
	t.Helper()
	root := t.TempDir()
	p := backup.Place{Database: "db", Dir: filepath.Join(root, "backup"), DataDir: filepath.Join(root, "data"), Major: 17, Cap: limit, Repositories: []backup.Access{{Name: "main", Path: "/x"}}}
	for _, dir := range []string{p.Dir, filepath.Join(p.DataDir, "pg_wal/archive_status")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string, mode os.FileMode) {
		// No child of another test may inherit the file while it is written: it could not be run.
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	stub := filepath.Join(root, "program")
	write(stub, "#!/bin/sh\n"+program+"\n", 0o700)
	for _, file := range (Engine{Program: stub, Version: Oldest}).Files(p) {
		write(file.Path, string(file.Data), file.Mode)
	}
	for path, text := range files {
		write(filepath.Join(root, path), text, 0o600)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(p.Dir, name), args...)
	cmd.Dir = p.DataDir
	out, err := cmd.CombinedOutput()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return failed.ExitCode()
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return 0
}

// The end of a server, and so a switchover, waits for no repository that is away: with 129 its
// archiver ends at once.
func TestArchivingKeepsNoServerFromEnding(t *testing.T) {
	const (
		wal      = "pg_wal/000000010000000000000001"
		stopping = "1\n/data\n0\n5432\n/run\n\n0\nstopping\n"
		ready    = "1\n/data\n0\n5432\n/run\n\n0\nready   \n"
	)
	seconds := func(n int64) string { return strconv.FormatInt(time.Now().Unix()+n, 10) + "\n" }
	for name, test := range map[string]struct {
		program string
		files   map[string]string
		want    int
	}{
		"works":                       {"exit 0", map[string]string{"data/postmaster.pid": ready}, 0},
		"fails":                       {"exit 1", map[string]string{"data/postmaster.pid": ready}, 1},
		"killed":                      {"kill -9 $$", map[string]string{"data/postmaster.pid": ready}, 1},
		"ends":                        {"exit 0", map[string]string{"data/postmaster.pid": stopping}, 0},
		"ends, and fails":             {"exit 1", map[string]string{"data/postmaster.pid": stopping}, 129},
		"ends, and hangs":             {"sleep 100", map[string]string{"data/postmaster.pid": stopping}, 129},
		"ends, and failed before":     {"exit 0", map[string]string{"data/postmaster.pid": stopping, "backup/failing": "x"}, 129},
		"a standby's own files":       {"exit 1", map[string]string{"data/standby.signal": ""}, 1},
		"failed before, and goes on":  {"exit 0", map[string]string{"data/postmaster.pid": ready, "backup/failing": "x"}, 0},
		"a standby ends, and waits":   {"exit 1", map[string]string{"data/postmaster.pid": stopping, "data/standby.signal": ""}, 129},
		"no archive command is known": {"exit 127", map[string]string{}, 1},

		"ends, and takes long":             {"sleep 4", map[string]string{"data/postmaster.pid": stopping}, 129},
		"ends for good":                    {"sleep 4", map[string]string{"data/postmaster.pid": stopping, "backup/patience": seconds(30)}, 0},
		"ends for good, and hangs":         {"sleep 100", map[string]string{"data/postmaster.pid": stopping, "backup/patience": seconds(5)}, 129},
		"ends for good, and fails":         {"exit 1", map[string]string{"data/postmaster.pid": stopping, "backup/patience": seconds(30)}, 129},
		"ends for good, and failed before": {"exit 0", map[string]string{"data/postmaster.pid": stopping, "backup/patience": seconds(30), "backup/failing": "x"}, 129},
		"ended for good long ago":          {"sleep 4", map[string]string{"data/postmaster.pid": stopping, "backup/patience": seconds(-30)}, 129},
		"may wait for ever":                {"sleep 4", map[string]string{"data/postmaster.pid": stopping, "backup/patience": seconds(1000)}, 129},
		"may wait for nonsense":            {"sleep 4", map[string]string{"data/postmaster.pid": stopping, "backup/patience": "99999999999999999999999\n"}, 129},
		"may wait for text":                {"sleep 4", map[string]string{"data/postmaster.pid": stopping, "backup/patience": "$(touch x)\n"}, 129},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := runScript(t, test.program, archiveName, []string{wal}, test.files); got != test.want {
				t.Errorf("exit code %d, and not %d", got, test.want)
			}
		})
	}
}

// A program that hangs keeps no server from ending, and no more WAL than may waits for it.
func TestAnArchiveThatHangsIsLeft(t *testing.T) {
	const wal = "pg_wal/000000010000000000000001"
	for name, test := range map[string]struct {
		then string
		cap  int64
		want int
	}{
		"the server ends": {`printf '1\n/data\n0\n5432\n/run\n\n0\nstopping\n' >postmaster.pid`, 0, 129},
		"too much waits":  {"for n in 1 2 3; do : >pg_wal/archive_status/00000001000000000000000$n.ready; done", 2 << 24, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			if got := runCapped(t, test.cap, test.then+"; sleep 100", archiveName, []string{wal}, nil); got != test.want {
				t.Errorf("exit code %d, and not %d", got, test.want)
			}
			if took := time.Since(began); took > patience.For(20*time.Second) {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// What a standby alone has is of no use to the archive, and must not wait for it.
func TestStandbysArchiveNoHalfFiles(t *testing.T) {
	for _, name := range []string{"000000010000000000000001.partial", "000000010000000000000001.00000028.backup"} {
		if got := runScript(t, "exit 1", archiveName, []string{"pg_wal/" + name}, map[string]string{"data/standby.signal": ""}); got != 0 {
			t.Errorf("%s: exit code %d", name, got)
		}
	}
}

// A history that bars a timeline is in no repository, and nobody waits until it is.
func TestNoHistoryThatBarsIsArchived(t *testing.T) {
	for text, want := range map[string]int{"# taken\n": 0, "1\t0/3000000\tno reason\n": 1, "# x\n\n1\t0/3000000\t\n": 1} {
		for _, signal := range []string{"data/standby.signal", "data/nothing"} {
			t.Run(signal+" "+text, func(t *testing.T) {
				t.Parallel()
				files := map[string]string{signal: "", "data/pg_wal/00000002.history": text}
				if got := runScript(t, "exit 1", archiveName, []string{"pg_wal/00000002.history"}, files); got != want {
					t.Errorf("exit code %d, want %d", got, want)
				}
			})
		}
	}
}

// Only what is certainly not there lets recovery end.
func TestRecoveryEndsOnlyWhereWALDoes(t *testing.T) {
	const wal = "000000010000000000000005"
	// 15-1 has files of one log, up to what is listed.
	listing := `case "$*" in
	*archive-get*) exit 1 ;;
	*repo-ls*archive/db/15-1/*) echo ` + "000000010000000000000004-aa.zst" + `; [ ! -e "${0%/*}/later" ] || echo 000000010000000000000007-bb.zst ;;
	*repo-ls*) echo 0000000100000000 ;;
	esac`
	named := func(sum string) string { // of nothing
		return `case "$*" in *repo-ls*) echo ` + wal + "-" + sum + ".zst ;; *) echo 'P00 INFO: found x in the repo1: 15-1 archive' ;; esac"
	}
	const damaged = "echo 'ERROR: [042]: unable to get " + wal + ":'; echo 'repo1: 15-1/0000000100000000/" + wal + "-aa.zst [FormatError] zst error: [-20] Data corruption detected'; exit 42"
	for name, test := range map[string]struct {
		mode, program, name string
		files               map[string]string
		want                int
	}{
		"there":                     {"target", "exit 0", wal, nil, 0},
		"not there":                 {"target", "exit 1", wal, nil, 1},
		"nobody knows":              {"target", "exit 42", wal, nil, 126},
		"killed":                    {"target", "kill -9 $$", wal, nil, 126},
		"the end":                   {"newest", listing, wal, map[string]string{"backup/archive-id": "15-1\n"}, 1},
		"a gap":                     {"newest", listing, wal, map[string]string{"backup/archive-id": "15-1\n", "later": ""}, 126},
		"a gap behind a target":     {"target", listing, wal, map[string]string{"backup/archive-id": "15-1\n", "later": ""}, 1},
		"damaged, behind a target":  {"target", damaged, wal, nil, 1},
		"damaged":                   {"newest", damaged, wal, nil, 126},
		"a damaged history":         {"target", strings.ReplaceAll(damaged, wal, "00000002.history"), "00000002.history", nil, 126},
		"not what was archived":     {"check", named(strings.Repeat("a", 40)), wal, nil, 126},
		"what was archived":         {"check", named("da39a3ee5e6b4b0d3255bfef95601890afd80709"), wal, nil, 0},
		"no history":                {"newest", listing, "00000002.history", map[string]string{"backup/archive-id": "15-1\n", "later": ""}, 1},
		"nobody knows what follows": {"newest", `case "$*" in *archive-get*) exit 1 ;; esac; exit 42`, wal, map[string]string{"backup/archive-id": "15-1\n"}, 126},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := runScript(t, test.program, fetchName, []string{test.mode, "/conf", test.name, "/dev/null"}, test.files); got != test.want {
				t.Errorf("exit code %d, and not %d", got, test.want)
			}
		})
	}
}

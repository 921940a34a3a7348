package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/testkit"
)

// served starts a server on a new cluster. kill kills all of its processes at once.
func served(t *testing.T) (data string, kill func()) {
	t.Helper()
	install, u := newestInstall(t), testUser(t)
	dir := ownedDir(t, u)
	data = filepath.Join(dir, "data")
	if _, err := run(t.Context(), u, nil, install.Program("initdb"), "--pgdata="+data, "--no-sync", "--auth=peer"); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(install.Program("postgres"), "-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories="+dir)
	server.Dir = "/"
	// The server gets its own process group, so that all of its processes die at the same moment.
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	if u != nil {
		server.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
	}
	testkit.Start(t, server)
	kill = func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
	}
	t.Cleanup(kill)
	testkit.Eventually(t, 30*time.Second, func() error {
		text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		if err == nil && !strings.Contains(string(text), "ready") {
			err = errors.New("not ready")
		}
		return err
	})
	return data, kill
}

func TestWhatAKilledServerLeavesIsRemoved(t *testing.T) {
	data, kill := served(t)
	id, err := sharedID(data)
	if err != nil || id == 0 {
		t.Fatalf("segment %d, %v", id, err)
	}
	table, err := dynamicTable(id, data)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dynamicDir, fmt.Sprintf("PostgreSQL.%d", table))
	if err := RemoveShared(data); !errors.Is(err, errShared) {
		t.Errorf("of a server that runs: %v, want errShared", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("of a server that runs: %v", err)
	}
	kill()
	// Segments of another database are left alone.
	other := filepath.Join(filepath.Dir(data), "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err == nil {
		err = os.WriteFile(filepath.Join(other, "postmaster.pid"), pid, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error { // until the processes have detached
		if err := RemoveShared(other); !errors.Is(err, errShared) || strings.Contains(err.Error(), "in use") {
			return fmt.Errorf("by the pid file of another database: %w", err)
		}
		return nil
	})
	// Data that is about to be deleted is moved away first.
	trash := filepath.Join(filepath.Dir(data), "trash")
	if err := os.Rename(data, trash); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := RemoveShared(trash); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", file, err)
		}
		var desc unix.SysvShmDesc
		if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &desc); err == nil {
			t.Errorf("segment %d is left", id)
		}
	}
}

func TestDynamicSegmentsAreThoseOfTheTable(t *testing.T) {
	dir := t.TempDir()
	put := func(handle uint32, text []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("PostgreSQL.%d", handle)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	word := binary.NativeEndian
	table := make([]byte, dsmTable+4*dsmItem)
	word.PutUint32(table, dsmMagic)
	word.PutUint32(table[4:], 4)
	for n, item := range []struct{ handle, refs uint32 }{{100, 2}, {101, 2}, {102, 0}, {104, 1}} {
		word.PutUint32(table[dsmTable+n*dsmItem:], item.handle)
		word.PutUint32(table[dsmTable+n*dsmItem+4:], item.refs)
	}
	for _, handle := range []uint32{100, 101, 102} { // 104 is already gone
		put(handle, nil)
	}
	put(6, table)
	put(8, []byte("something else, and long enough"))
	if err := removeDynamic(dir, 8); !errors.Is(err, errShared) {
		t.Errorf("of what is no table: %v", err)
	}
	if err := removeDynamic(dir, 6); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got, want := strings.Join(left, " "), "PostgreSQL.101 PostgreSQL.102 PostgreSQL.8"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
}

func TestNoSharedMemory(t *testing.T) {
	for name, pidFile := range map[string]string{
		"a short pid file": "1\n/data\n", "no segment": "1\n/data\n1\n5432\n/run\n\n\nready\n", "one that is gone": "1\n/d\n1\n5432\n/run\n\n 123 2147483600\nready\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(pidFile), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := RemoveShared(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := RemoveShared(t.TempDir()); err != nil {
		t.Errorf("no pid file: %v", err)
	}
}

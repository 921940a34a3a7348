package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/testkit"
)

// restored is a server on restored data.
type restored struct {
	*world
	config *pgx.ConnConfig
	said   string // what it said, if it ended
	failed bool
}

// restore restores into a new directory, starts a server there, and waits until recovery ends or
// the server does. The server is gone when the test ends.
func (w *world) restore(name string, r backup.Restore) *restored {
	w.Helper()
	if r.Repository == "" {
		r.Repository = main
	}
	p := w.place
	p.Dir, p.DataDir = w.dir(w.server, "origin-"+name), w.dir(w.server, "data-"+name)
	w.write(w.server, p)
	w.must(w.engine.Restore(p, r))
	return w.start(name, p, w.engine.Recovery(p, r))
}

func (w *world) start(name string, p backup.Place, recovery backup.Recovery) *restored {
	w.Helper()
	signal := filepath.Join(p.DataDir, recovery.Signal)
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		w.Fatal(err)
	}
	w.server.Give(signal)
	socket := w.dir(w.server, "socket-"+name)
	args := []string{"-D", p.DataDir, "-c", "listen_addresses=", "-c", "unix_socket_directories=" + socket, "-c", "archive_mode=off", "-p", strconv.Itoa(p.Port)}
	for name, value := range recovery.Settings {
		args = append(args, "-c", name+"="+value)
	}
	// The test's context does not end it: the cleanup does, and waits.
	cmd := exec.CommandContext(context.WithoutCancel(w.Context()), filepath.Join(p.BinDir, "postgres"), args...)
	log, err := os.Create(filepath.Join(socket, "log"))
	if err != nil {
		w.Fatal(err)
	}
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: w.server.Credential(), Pdeathsig: syscall.SIGQUIT}
	testkit.Start(w, cmd)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // what it said is looked at
	}()
	w.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
		<-ended
	})
	config := w.server.Config()
	config.Host = socket
	return w.recovered(&restored{world: w, config: config}, log.Name(), ended)
}

// recovered waits until a server takes writes, or has ended.
func (w *world) recovered(r *restored, log string, ended <-chan struct{}) *restored {
	w.Helper()
	// A repository that is away is asked again and again.
	testkit.Eventually(w, 3*within, func() error {
		said, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		r.said = string(said)
		select {
		case <-ended:
			r.failed = true
			return nil
		default:
		}
		var recovering string
		if err := ask(w.Context(), r.config, "SELECT pg_is_in_recovery()::text", &recovering); err != nil {
			return fmt.Errorf("%w; it said:\n%s", err, said)
		}
		if recovering == "true" {
			return fmt.Errorf("it recovers; it said:\n%s", said) //nolint:err113 // for who reads the test
		}
		return nil
	})
	return r
}

// has fails unless the server is there and a query answers this.
func (r *restored) has(sql, want string) {
	r.Helper()
	if r.failed {
		r.Fatalf("recovery failed:\n%s", r.said)
	}
	var got string
	if err := ask(r.Context(), r.config, sql, &got); err != nil {
		r.Fatal(err)
	}
	if got != want {
		r.Errorf("%s answers %q, and not %q", sql, got, want)
	}
}

// ended fails unless recovery failed with these words.
func (r *restored) ended(words string) {
	r.Helper()
	if !r.failed || !strings.Contains(r.said, words) {
		r.Errorf("recovery did not end with %q (failed: %t):\n%s", words, r.failed, r.said)
	}
}

package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"

	"howdah/internal/system/owner"
)

// run runs one of PostgreSQL's programs as user and returns what it printed.
func run(ctx context.Context, user *owner.User, stdin io.Reader, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	cmd.Dir = "/"
	cmd.Stdin = stdin
	// What the program has started ends with it: initdb's servers would go on to write.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if user != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user.UID), Gid: uint32(user.GID)}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("run %s: %w: %s", filepath.Base(program), err, tail(out.String()))
	}
	return out.String(), nil
}

// tail returns the end of a program's output, which has the reason of a failure.
func tail(text string) string {
	const most = 400
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return text
}

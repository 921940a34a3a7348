package rig

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// PGBench returns a command that runs PostgreSQL's own benchmark as the master user, against an address,
// with TLS verified in full. It ends with this process at the latest.
func (r *Rig) PGBench(ctx context.Context, host, port string, args ...string) (*exec.Cmd, error) {
	passFile := filepath.Join(r.Dir, "pgpass")
	if err := os.WriteFile(passFile, []byte("*:*:*:*:"+Password+"\n"), 0o600); err != nil {
		return nil, err
	}
	args = append([]string{"-h", host, "-p", port, "-U", "app"}, args...)
	cmd := exec.CommandContext(ctx, "pgbench", append(args, "postgres")...)
	cmd.Env = append(os.Environ(), "PGSSLMODE=verify-full", "PGSSLROOTCERT="+r.Home.CAFile(), "PGPASSFILE="+passFile)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

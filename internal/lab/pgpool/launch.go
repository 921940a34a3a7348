package pgpool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"howdah/internal/host/pace"
	"howdah/internal/lab/address"
)

// ErrUser says that nobody is there whom pgpool can run as.
var ErrUser = errors.New("pgpool must not run as root, and there is no user postgres")

// runsAs is the user that pgpool runs as; nil: our own.
func runsAs() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, ErrUser
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(errUID, errGID); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUser, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// run starts it, and waits until it answers.
func (p *Pool) run(ctx context.Context) error {
	dir := p.record.Directory
	log, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("start pgpool: %w", err)
	}
	defer log.Close()
	started := make(chan error)
	go func() {
		// It would be told to end at the end of the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd, err := p.launch(log)
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	return p.answers(ctx)
}

// launch starts its first process, in a namespace of its own for shared memory and semaphores, if the kernel
// gives it one: those that it leaves, as it is killed, are gone with its last process.
func (p *Pool) launch(log *os.File) (cmd *exec.Cmd, err error) {
	owner, err := runsAs()
	if err != nil {
		return nil, err
	}
	for _, apart := range []bool{true, false} {
		// It is ended by Stop, and not by the end of a context, which would leave what it started.
		cmd = exec.Command(p.options.Program, "-n", "-D", "-f", configFile, "-a", hbaFile, "-F", pcpFile, "-k", keyFile) //nolint:noctx // see above
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.record.Directory, []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}, log, log
		// It ends in good order, with all its processes, when the lab is killed.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: owner, Pdeathsig: syscall.SIGINT}
		if apart {
			separate(cmd.SysProcAttr)
		}
		if err = cmd.Start(); err == nil {
			return cmd, nil
		}
	}
	return nil, err
}

// separate asks for the namespace. An ordinary user may have one within a namespace of users.
func separate(a *syscall.SysProcAttr) {
	a.Cloneflags = syscall.CLONE_NEWIPC
	if a.Credential != nil {
		return
	}
	a.Cloneflags |= syscall.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
}

// answers waits until a session through it works, which has all servers.
func (p *Pool) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for last := error(nil); ; {
		err := ask(ctx, p.server)
		if err == nil {
			err = p.Reached()
		}
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // the end of ctx says nothing of pgpool
			last = err
		}
		if ended := p.Ended(); ended != nil {
			return fmt.Errorf("%w: %w", ErrStart, ended)
		}
		if !pace.Sleep(ctx, 5*lookEvery) {
			return fmt.Errorf("%w within %s: %w: %s", ErrStart, startWithin, last, p.Says())
		}
	}
}

func ask(ctx context.Context, server address.Server) error {
	conn, err := pgx.ConnectConfig(ctx, server.Config())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "SELECT 1")
	return err
}

const (
	mostLines = 5
	mostLog   = 4 << 10 // bytes, of its end
)

// Says returns the last lines of its log, in one.
func (p *Pool) Says() string {
	file, err := os.OpenFile(filepath.Join(p.record.Directory, logFile), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-mostLog), mostLog))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-mostLines):], "; ")
}

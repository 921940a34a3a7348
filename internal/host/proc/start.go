package proc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/system/btrfs"
	"howdah/internal/system/thread"
)

// ErrCommand says that a command lacks something that Start needs.
var ErrCommand = errors.New("incomplete command")

// Command is a program to start in a group.
type Command struct {
	Path    string   // absolute
	Args    []string // without the name of the program
	Env     []string // the whole environment; nothing is inherited, a marker is added
	Dir     string   // working directory; "" means /
	LogFile string   // stdout and stderr are appended to it; opened, and made with mode 0600, as User
	// DataDir is where PostgreSQL will work, if this command leads to one. It need not exist yet.
	// It is remembered if a later command names none.
	DataDir string
	User    *User // nil means our own
	// NoSubvolumes says that nothing which this command leads to may make subvolumes of Btrfs
	// (btrfs.Forbid). It needs a User.
	NoSubvolumes bool
	// Yields says that the command and what it starts stand back for others that want a processor.
	Yields bool
}

// User is the user that a command runs as.
type User struct {
	UID    uint32
	GID    uint32
	Groups []uint32 // supplementary
}

// reapedWithin is how long Start waits until init has reaped the dead.
const reapedWithin = 5 * time.Second

// starting keeps starts apart, because a start may have to change the umask of the whole process
// for a moment.
var starting sync.Mutex

// Start starts a command in the group. The command is in the group from its first instruction on,
// in a session of its own, with umask 077 and without any open file except its log. It outlives
// this process, and ctx means nothing to it once it is started. If Start returns an error, the
// command does not run. After a Kill, Start first waits, up to five seconds, until the dead are
// gone from the process table, because PostgreSQL would take them for alive. It returns ErrRuns if
// an earlier life of the agent started a command that still runs, and was killed before it could
// record it. A goroutine waits for the child until it ends.
func (g *Group) Start(ctx context.Context, command Command) (Process, error) {
	g.awaitReaped(ctx) // before the lock, which a Kill must not wait for
	if process, err := g.awaitBegun(ctx); !errors.Is(err, ErrGone) {
		return Process{}, errors.Join(err, fmt.Errorf("start in %s: process %d: %w", g.name, process.PID, ErrRuns))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Process{}, fmt.Errorf("start in %s: %w", g.name, err)
	}
	if command.Path == "" || command.LogFile == "" {
		return Process{}, fmt.Errorf("start in %s: path and log file: %w", g.name, ErrCommand)
	}
	if err := g.freshControl(); err != nil {
		return Process{}, err
	}
	if err := g.ensure(); err != nil {
		return Process{}, err
	}
	noted, err := g.note(command)
	if err != nil {
		return Process{}, err
	}
	defer startsOne()()
	handle, err := g.launch(command.yields())
	if err == nil && command.Yields {
		_ = g.standBack(handle.Pid) // one that does not is better than none
	}
	noted.Begun = nil
	if err != nil {
		g.remember(noted)
		return Process{}, fmt.Errorf("start %s in %s: %w", command.Path, g.name, err)
	}
	return g.keep(handle, noted)
}

// awaitReaped waits until what was killed is gone from the process table. A process stays there
// until its parent reaps it. PostgreSQL takes a postmaster that is dead but still there for alive,
// and does not start. Init reaps at once in most systems, and never in some containers, hence the
// limit.
func (g *Group) awaitReaped(ctx context.Context) {
	r, err := g.record()
	if err != nil {
		return // it will be told by who cannot do without
	}
	ctx, cancel := context.WithTimeout(ctx, reapedWithin)
	defer cancel()
	_ = until(ctx, func() (bool, error) {
		for _, process := range r.Dead {
			if entry, err := g.host.processes.Get(process.PID); err == nil && entry.ID == process {
				return false, nil
			}
		}
		return true, nil
	})
}

// freshControl removes the group in which the command is to be started, so that ensure makes it
// anew. Linux 6.18 (measured) kills every process that is started right into a group in which
// cgroup.kill was ever written. If something runs in the group, it stays.
func (g *Group) freshControl() error {
	if g.host.containment != Cgroup2 {
		return nil
	}
	err := cgroup.Remove(g.control())
	if errors.Is(err, cgroup.ErrBusy) {
		return nil
	}
	return err
}

// note records, before anything runs, what finds the processes to come. It drops sessions that
// nobody is in any more.
func (g *Group) note(command Command) (record, error) {
	r, err := g.record()
	if err != nil {
		return r, err
	}
	r.Dead, r.Begun = nil, append([]string{command.Path}, command.Args...)
	dir, err := resolve(command.DataDir)
	if err != nil {
		return r, fmt.Errorf("find data directory: %w", err)
	}
	if dir != "" {
		r.DataDir = dir
	}
	uid := os.Getuid()
	if command.User != nil {
		uid = int(command.User.UID)
	}
	r.UID = &uid
	if r.Sessions, err = g.inhabited(r.Sessions); err != nil {
		return r, err
	}
	return r, g.save(r)
}

func (g *Group) inhabited(sessions []Process) ([]Process, error) {
	all, err := g.host.processes.All()
	if err != nil {
		return nil, err
	}
	used := map[int]bool{}
	for _, entry := range all {
		used[entry.Session], used[entry.Group] = true, true
	}
	var kept []Process
	for _, session := range sessions {
		if used[session.PID] {
			kept = append(kept, session)
		}
	}
	return kept, nil
}

// keep takes charge of a child. The child will be waited for, and found again. It cannot have been
// waited for yet, so its entry is there even if it has ended.
func (g *Group) keep(handle *os.Process, noted record) (Process, error) {
	entry, err := g.host.processes.Get(handle.Pid)
	ours := &child{group: g.name, done: make(chan struct{})}
	if err == nil {
		g.host.adopt(entry.ID, ours)
		noted.Sessions = append(slices.Clip(noted.Sessions), entry.ID)
		err = g.save(noted)
	}
	if err != nil {
		_ = handle.Kill()
	}
	go g.host.reap(entry.ID, handle, ours)
	if err != nil {
		<-ours.done
		return Process{}, err
	}
	return entry.ID, nil
}

// launch starts the command on a thread of its own. A child inherits the umask from the thread, and
// in version 1 also the control group.
func (g *Group) launch(command Command) (handle *os.Process, err error) {
	if err := withoutCores(); err != nil {
		return nil, err
	}
	log, err := openLog(command)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	sys := &syscall.SysProcAttr{Setsid: true, Credential: credential(command.User)}
	if g.host.containment == Cgroup2 {
		group, err := os.Open(g.control())
		if err != nil {
			return nil, fmt.Errorf("open control group: %w", err)
		}
		defer group.Close()
		sys.UseCgroupFD, sys.CgroupFD = true, int(group.Fd())
	}
	attributes := &os.ProcAttr{Dir: command.Dir, Env: append([]string{g.marker()}, command.Env...), Files: []*os.File{null, log, log}, Sys: sys}
	if attributes.Dir == "" {
		attributes.Dir = "/"
	}
	arguments := append([]string{command.Path}, command.Args...)
	used := thread.Throwaway(func() {
		leave, failed := g.enter()
		if err = failed; err != nil {
			return
		}
		if command.User != nil {
			// A program that another user left, and that would give away the rights of that user,
			// gives none.
			if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				err = errors.Join(fmt.Errorf("give up further rights: %w", err), leave())
				return
			}
			if command.NoSubvolumes {
				if err = btrfs.Forbid(); err != nil {
					err = errors.Join(err, leave())
					return
				}
			}
		}
		handle, err = os.StartProcess(command.Path, arguments, attributes)
		err = errors.Join(err, leave())
	})
	awaitThread(used)
	if err != nil && handle != nil {
		_ = handle.Kill()
		_, _ = handle.Wait()
	}
	return handle, err
}

// openLog opens the file that the command's output goes to, with no more rights than the command
// will have. The log may lie in a directory of the command's user.
func openLog(command Command) (log *os.File, err error) {
	const flags = os.O_WRONLY | os.O_APPEND | os.O_CREATE | unix.O_NOFOLLOW | unix.O_NONBLOCK
	open := func() error {
		log, err = os.OpenFile(command.LogFile, flags, 0o600)
		if errors.Is(err, os.ErrPermission) && os.Remove(command.LogFile) == nil {
			// In an earlier release the log belonged to root.
			log, err = os.OpenFile(command.LogFile, flags, 0o600)
		}
		return err
	}
	if as := credential(command.User); as != nil {
		err = thread.As(int(as.Uid), int(as.Gid), open)
	} else {
		err = open()
	}
	return log, err
}

// enter makes the calling thread one whose children start as members should.
func (g *Group) enter() (leave func() error, err error) {
	starting.Lock()
	// Descriptors that this process inherited without the flag would live on in the child, such as
	// the pipe of whoever started this process and waits for its end.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	// If a container forbids this, the umask below is for a moment that of the whole process. Files
	// that are made meanwhile are only more private.
	_ = unix.Unshare(unix.CLONE_FS)
	before := unix.Umask(0o077)
	back := func() {
		unix.Umask(before)
		starting.Unlock()
	}
	if g.host.containment != Freezer {
		return func() error { back(); return nil }, nil
	}
	top := g.host.layout.Freezer
	if err := cgroup.AddThread(g.below(top), unix.Gettid()); err != nil {
		back()
		return nil, err
	}
	return func() error {
		defer back()
		// The thread soon ends, but a Kill may come sooner and must not meet this thread there.
		return cgroup.AddThread(top, unix.Gettid())
	}, nil
}

// threadWithin is how long a thread may take to end that has nothing more to do.
const threadWithin = time.Second

// awaitThread waits until a thread of this process is gone. While it is in the top group, that
// group cannot be removed, and nobody would come back to remove it.
func awaitThread(thread int) {
	ctx, cancel := context.WithTimeout(context.Background(), threadWithin)
	defer cancel()
	_ = until(ctx, func() (bool, error) {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
		return err != nil, nil
	})
}

// credential returns nil if nothing is to change. An ordinary user may ask for that, too.
func credential(user *User) *syscall.Credential {
	if user == nil || (os.Geteuid() != 0 && int(user.UID) == os.Geteuid()) {
		return nil
	}
	return &syscall.Credential{Uid: user.UID, Gid: user.GID, Groups: user.Groups}
}

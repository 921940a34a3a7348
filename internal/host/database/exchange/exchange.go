// Package exchange moves data between databases and buckets of S3 servers, for the extension aws_s3. Each
// member has a socket of its own, which only its operating-system user may open. A server process there
// says which file of which bucket it exports to or imports from, and sends or takes the data; the agent
// asks a control plane what the database's role opens, and talks to the S3 server.
//
// Invariants: who the database is follows from the socket, not from what is said there. The server, the
// bucket and the key come from the role, and no member ever sees the key. An object is whole or it is not
// there. Whoever gets hold of a member's user can do by the socket what SQL can do, and no more: how many
// transfers there are, what each holds in memory, and how long a silent server is waited for is limited.
package exchange

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/pace"
	"howdah/internal/model/member"
)

// Config is what a server needs. Zero values of numbers stand for what is usual.
type Config struct {
	// Ask returns what lets the database of a member into a bucket for a feature. hostapi.ErrRefused
	// says that it has no role.
	Ask func(ctx context.Context, of, feature string) (member.Bucket, error)
	Log *slog.Logger
	// Notes is a directory that only we may read, with what is known of exports that are under way: see
	// note. It has to be there, and outlive us.
	Notes string
	// Patience is how long an S3 server may bring nothing forward; 0: 30 s. Request is how long a
	// member may take to say what it wants; 0: 10 s.
	Patience, Request time.Duration
	// PerMember is how many transfers of one member may be under way; 0: 4. Exports and Imports are
	// how many of all may be; 0: 16 and 64. An export holds two pieces of package store, which archiving
	// and backups need, too.
	PerMember, Exports, Imports int
}

const (
	usualPatience  = 30 * time.Second
	usualRequest   = 10 * time.Second
	usualPerMember = 4
	usualExports   = 16
	usualImports   = 64
	// failedPause is what keeps whoever asks for what fails from filling the log.
	failedPause = 100 * time.Millisecond
	// waiting is how many connections of a member may be answered at once, with those that have asked
	// for nothing yet and those that are refused.
	waiting = 8
)

// Server answers members. All methods may be called at the same time.
type Server struct {
	config Config

	mu       sync.Mutex
	underWay map[string]int  // by member; guarded by mu
	kinds    map[request]int // by kind; guarded by mu
	noted    map[string]bool // notes of exports that are under way; guarded by mu
}

// New returns a server.
func New(config Config) *Server {
	setDefault(&config.Patience, usualPatience)
	setDefault(&config.Request, usualRequest)
	setDefault(&config.PerMember, usualPerMember)
	setDefault(&config.Exports, usualExports)
	setDefault(&config.Imports, usualImports)
	return &Server{config: config, underWay: map[string]int{}, kinds: map[request]int{}, noted: map[string]bool{}}
}

func setDefault[T int | time.Duration](value *T, usual T) {
	if *value == 0 {
		*value = usual
	}
}

// Listen makes a socket that only this user may open. Only we may write to its directory. What an
// earlier agent left there is replaced.
func Listen(ctx context.Context, path string, uid, gid int) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen for exports and imports: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for exports and imports: %w", err)
	}
	// Until then only we may open it: connecting takes the right to write.
	if err := errors.Join(os.Chmod(path, 0o600), os.Lchown(path, uid, gid)); err != nil {
		return nil, errors.Join(fmt.Errorf("give away %s: %w", filepath.Base(path), err), l.Close())
	}
	return l.(*net.UnixListener), nil
}

// Serve answers a member, which runs as that user, until ctx ends. It closes the listener, and ends what
// is under way.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener, of string, uid int) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	defer func() { _ = l.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	seats := make(chan struct{}, waiting)
	for {
		// Who finds no seat waits in the kernel's queue, whose length is limited, too.
		select {
		case seats <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("answer exports and imports of %s: %w", of, err)
		}
		all.Go(func() {
			defer func() { <-seats }()
			s.answer(ctx, conn, of, uid)
		})
	}
}

// answer does what one connection asks for.
func (s *Server) answer(ctx context.Context, conn *net.UnixConn, of string, uid int) {
	defer func() { _ = conn.Close() }()
	log := s.config.Log.With("member", of)
	if peer, err := peerOf(conn); err != nil || peer != uid {
		log.Warn("somebody else asks for exports and imports", "uid", peer, "error", err)
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		// Who waits for a server that says nothing does not wait for the member, who is told of it.
		if !errors.Is(context.Cause(ctx), errMute) {
			_ = errors.Join(conn.CloseRead(), conn.SetWriteDeadline(time.Unix(1, 0)))
		}
	})
	defer stop()
	t := &talk{conn: conn}
	w, err := t.wish(s.config.Request)
	if err == nil {
		err = s.within(of, w.kind, func() error { return s.transfer(ctx, cancel, t, of, w) })
	}
	if err == nil {
		return
	}
	if cause := context.Cause(ctx); errors.Is(cause, errMute) {
		err = cause
	}
	level := slog.LevelInfo
	if errors.Is(err, errTalk) || errors.Is(err, errBusy) {
		level = slog.LevelDebug
	}
	log.Log(ctx, level, "an export or import failed", "bucket", fmt.Sprintf("%.80q", w.bucket), "file", fmt.Sprintf("%.200q", w.file), "error", err)
	stop()
	t.refuse(err)
	// Who fails again and again keeps its seat meanwhile.
	_ = conn.Close()
	pace.Sleep(ctx, failedPause)
}

// within does a transfer, or refuses it if there are too many.
func (s *Server) within(of string, kind request, do func() error) error {
	release, err := s.enter(of, kind)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// enter counts a transfer, or refuses it.
func (s *Server) enter(of string, kind request) (release func(), err error) {
	most := map[request]int{export: s.config.Exports, imports: s.config.Imports}[kind]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underWay[of] >= s.config.PerMember || s.kinds[kind] >= most {
		return nil, errBusy
	}
	add := func(n int) {
		s.kinds[kind] += n
		if s.underWay[of] += n; s.underWay[of] == 0 {
			delete(s.underWay, of)
		}
	}
	add(1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		add(-1)
	}, nil
}

// peerOf returns the user who has opened a connection.
func peerOf(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	uid = -1
	controlErr := raw.Control(func(fd uintptr) {
		var peer *unix.Ucred
		if peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = int(peer.Uid)
		}
	})
	return uid, errors.Join(err, controlErr)
}

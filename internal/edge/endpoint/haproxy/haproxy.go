// Package haproxy makes endpoints real without any privilege, with one HAProxy process for each
// endpoint. So nothing is ever reloaded, and no endpoint can disturb another. The price is a copy
// of every byte, and PostgreSQL sees the address of this machine instead of the client's.
//
// A proxy is told through its runtime socket where to lead. It has a number of slots for servers. A
// target gets a slot of its own, and keeps it while it has sessions. So Cut knows the sessions to
// one target and ends just those. Without targets the frontend is disabled, which closes its
// listening socket.
//
// Invariants: proxies outlive this process (under systemd the unit needs KillMode=process), and are
// found again by the path of their configuration in their command line. A process is only signalled
// through a pidfd that was taken before its command line was read, so never a recycled number. The
// directory belongs to this user alone.
package haproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"howdah/internal/edge/endpoint"
)

// Name is what Config.Driver calls this implementation.
const Name = "haproxy"

// maxDir leaves room for the name of a socket, which may have 107 bytes, and for
// the suffix that haproxy uses while it makes one.
const maxDir = 66

// mostConnections is how many connections a proxy takes at most. That is more than any PostgreSQL
// here has, so that PostgreSQL is the one to say that there are too many clients.
const mostConnections = 5000

// Forwarder implements endpoint.Forwarder. Make it with New.
type Forwarder struct {
	cfg     endpoint.Config
	dir     string
	program string
	maxConn int
	log     *slog.Logger

	mu      sync.Mutex // guards what follows
	synced  bool
	have    []endpoint.Endpoint
	proxies map[netip.AddrPort]*process
	mended  []string // since the last Sync
}

var _ endpoint.Forwarder = (*Forwarder)(nil)

// New returns a Forwarder. The error wraps endpoint.ErrUnavailable if haproxy is not installed or
// too old. New makes the directory and nothing else.
func New(ctx context.Context, cfg endpoint.Config) (*Forwarder, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := prepare(cfg.RunDir); err != nil {
		return nil, err
	}
	program, err := find()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", endpoint.ErrUnavailable, err)
	}
	maxConn, err := connections()
	if err != nil {
		return nil, err
	}
	sample := endpoint.Endpoint{Listen: nowhere}
	if err := run(ctx, program, render(sample, "/sample", os.DevNull, maxConn), "-c", "-f", "/dev/stdin"); err != nil {
		return nil, fmt.Errorf("%w: %w", endpoint.ErrUnavailable, err)
	}
	return &Forwarder{
		cfg:     cfg,
		dir:     filepath.Clean(cfg.RunDir),
		program: program,
		maxConn: maxConn,
		log:     cfg.Logger(Name),
		proxies: map[netip.AddrPort]*process{},
	}, nil
}

// Info describes f.
func (f *Forwarder) Info() endpoint.Info {
	return endpoint.Info{Driver: Name, ClientAddressVisible: false, Cost: cost}
}

// cost is what BenchmarkPaths of package driver and TestMemory measured. The figures for PostgreSQL
// are those of pgbench -S with prepared statements and TLS.
const cost = "a proxy of 6 MB for each endpoint: about half the connections and bare round trips a second of a direct connection; of PostgreSQL's shortest transactions half with one client, and two thirds with many"

// prepare makes the directory, and refuses one that others could reach into.
func prepare(dir string) error {
	if dir == "" || len(dir) > maxDir || dir[0] != '/' {
		return fmt.Errorf("%w: run directory %q is not an absolute path of at most %d bytes", endpoint.ErrInvalid, dir, maxDir)
	}
	// Others need the directories above it, too, on their way to the sockets of PostgreSQL.
	err := os.MkdirAll(filepath.Dir(dir), 0o711)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make the run directory: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fmt.Errorf("look at the run directory: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o077 != 0 || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: run directory %s is open to other users", endpoint.ErrInvalid, dir)
	}
	return nil
}

// find also looks where Debian keeps haproxy, which is not on every PATH.
func find() (string, error) {
	if path, err := exec.LookPath("haproxy"); err == nil {
		return path, nil
	}
	for _, path := range []string{"/usr/sbin/haproxy", "/sbin/haproxy"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find haproxy: %w", exec.ErrNotFound)
}

// connections returns how many connections a proxy may take. Each needs two descriptors, and
// haproxy ends if it cannot have them.
func connections() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	const own = 100
	if limit.Max < 2*own {
		return 0, fmt.Errorf("%w: only %d open files are allowed", endpoint.ErrUnavailable, limit.Max)
	}
	return int(min(mostConnections, (limit.Max-own)/2)), nil
}

// Sync implements endpoint.Forwarder.
func (f *Forwarder) Sync(ctx context.Context, all []endpoint.Endpoint) ([]string, error) {
	want, err := f.cfg.Normal(all...)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.converge(ctx, want)
	mended := f.mended
	f.mended = nil
	return mended, err
}

// converge makes want real as far as it can. An endpoint that fails does not keep the others from
// being made. The caller holds mu.
func (f *Forwarder) converge(ctx context.Context, want []endpoint.Endpoint) error {
	if err := prepare(f.dir); err != nil {
		return err
	}
	if !f.synced {
		if err := f.adopt(); err != nil {
			return err
		}
	}
	wanted := map[netip.AddrPort]bool{}
	for _, e := range want {
		wanted[e.Listen] = true
	}
	var errs []error
	for listen := range f.proxies {
		if !wanted[listen] {
			errs = append(errs, f.stop(listen))
		}
	}
	for _, e := range want {
		errs = append(errs, f.lead(ctx, e))
	}
	f.have, f.synced = want, true
	return errors.Join(errs...)
}

// adopt finds all proxies, also those that an earlier process left. A kill -9 at the wrong time can
// leave two for one endpoint. Then it ends one.
func (f *Forwarder) adopt() error {
	found, err := running(f.dir)
	if err != nil {
		return err
	}
	for config, pids := range found {
		listen, err := listenOf(config)
		if err != nil {
			continue
		}
		for _, pid := range pids {
			if err := f.take(listen, pid, config); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Forwarder) take(listen netip.AddrPort, pid int, config string) error {
	p, err := hold(pid, config)
	if err != nil || p == nil {
		return err
	}
	switch known := f.proxies[listen]; {
	case known == nil:
		f.proxies[listen] = p
	case known.pid == pid:
		p.release()
	default:
		return p.stop()
	}
	return nil
}

func (f *Forwarder) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.log.Warn("mended an endpoint", "what", text)
	f.mended = append(f.mended, text)
}

// lead makes one endpoint real, with its proxy or with a new one.
func (f *Forwarder) lead(ctx context.Context, e endpoint.Endpoint) error {
	if err := f.tryLead(ctx, e); err != nil {
		return fmt.Errorf("lead %s from %s: %w", e.ID, e.Listen, err)
	}
	return nil
}

func (f *Forwarder) tryLead(ctx context.Context, e endpoint.Endpoint) error {
	p, files := f.proxies[e.Listen], filesOf(f.dir, e.Listen)
	if p != nil && p.ended(0) {
		f.note("the proxy of %s at %s had ended", e.ID, e.Listen)
		return f.restart(ctx, e)
	}
	if p == nil {
		return f.start(ctx, e)
	}
	now, err := files.look(ctx)
	if errors.Is(err, errMute) && ctx.Err() == nil {
		now, err = files.look(ctx) // a machine that stood still is no reason to end sessions
	}
	if errors.Is(err, errMute) && ctx.Err() == nil {
		f.note("the proxy of %s at %s did not answer: %v", e.ID, e.Listen, err)
		return f.restart(ctx, e)
	}
	if err != nil {
		return err
	}
	if now.leads(e.Targets) && now.admits(e) {
		return nil
	}
	if _, old := endpoint.With(f.have, e); old != nil && !(now.leads(old.Targets) && now.admits(*old)) {
		f.note("the proxy of %s at %s led elsewhere", e.ID, e.Listen)
	}
	if !now.guarded && e.Allow != nil {
		return f.restart(ctx, e) // it is of a version that could not ask who may connect
	}
	return errors.Join(files.admit(ctx, now, e), files.lead(ctx, now.state, e.Targets))
}

// start starts a proxy. It leaves none behind that it does not know.
func (f *Forwarder) start(ctx context.Context, e endpoint.Endpoint) error {
	files := filesOf(f.dir, e.Listen)
	if err := start(ctx, f.program, files, e, f.maxConn); err != nil {
		return errors.Join(err, f.adopt())
	}
	pid, err := files.pid(ctx)
	if err != nil {
		return errors.Join(err, f.adopt())
	}
	if err := f.take(e.Listen, pid, files.config()); err != nil {
		return err
	}
	if f.proxies[e.Listen] == nil {
		return errEnded
	}
	return nil
}

// errEnded means that a proxy did not outlive its start.
var errEnded = errors.New("the proxy ended at once")

func (f *Forwarder) restart(ctx context.Context, e endpoint.Endpoint) error {
	if err := f.stop(e.Listen); err != nil {
		return err
	}
	return f.start(ctx, e)
}

func (f *Forwarder) stop(listen netip.AddrPort) error {
	if err := f.proxies[listen].stop(); err != nil {
		return fmt.Errorf("end %s: %w", listen, err)
	}
	delete(f.proxies, listen)
	return filesOf(f.dir, listen).remove()
}

// Point implements endpoint.Forwarder.
func (f *Forwarder) Point(ctx context.Context, e endpoint.Endpoint) error {
	normal, err := f.cfg.Normal(e)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.synced {
		return fmt.Errorf("point %s: %w", e.ID, endpoint.ErrNotSynced)
	}
	if err := f.lead(ctx, normal[0]); err != nil {
		return err
	}
	f.have, _ = endpoint.With(f.have, normal[0])
	return nil
}

// Remove implements endpoint.Forwarder.
func (f *Forwarder) Remove(_ context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.adopt(); err != nil {
		return err
	}
	var errs []error
	for listen := range f.proxies {
		errs = append(errs, f.stop(listen))
	}
	f.synced, f.have, f.mended = false, nil, nil
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return clearDir(f.dir)
}

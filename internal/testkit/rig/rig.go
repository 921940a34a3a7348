// Package rig runs a whole Howdah for tests and benchmarks: a control plane, an edge and three
// hosts. They are processes of the real program, and can be killed, frozen and cut off. On loopback
// all are on one network. With Netns every host is in a network namespace of its own, behind a link
// that can be cut.
//
// A rig needs a network namespace to itself: see Isolate.
package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/driver"
	"howdah/internal/host/database"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgversion" // what a rig starts inherits its choice
)

// Options say what a rig is like.
type Options struct {
	Binary string // path of howdah
	// Programs has the programs of parts that run another one than Binary, by the parts' names.
	Programs map[string]string
	Dir      string   // for everything; must be reachable for the user postgres
	Netns    bool     // hosts in network namespaces of their own; needs root
	User     *Account // run as this ordinary user; nil: as we are
	Edge     []string // more arguments of the edge
	Serve    []string // more arguments of the control planes
	Serves   int      // how many control planes; 0: one
	// Moving runs an edge on every host, with addresses that move with the primary. It needs Netns.
	Moving bool
	Log    func(format string, args ...any)
}

// Account is an ordinary user.
type Account struct{ UID, GID uint32 }

// startWithin is how long a rig may take to start. Several rigs start at once, on disks that still
// write what earlier tests left. So it says nothing about Howdah.
const startWithin = 90 * time.Second

// Zones are the zones of a rig.
var Zones = []string{"a", "b", "c"}

// Rig is a running Howdah.
type Rig struct {
	Options
	Home  *home.Home
	Store *state.Store
	http  *http.Client
	key   home.Credential
	mu    sync.Mutex
	parts map[string]*part // guarded by mu
	net   *network
	stop  context.CancelFunc
	// release gives the home's part of the loopback network back.
	release func()
}

// Start starts a rig. It waits until all hosts are there, for at most startWithin.
func Start(ctx context.Context, o Options) (*Rig, error) {
	r := &Rig{Options: o, parts: map[string]*part{}}
	key := home.Credential{AccessKey: "RIG", Secret: "rig-secret", Account: "123456789012"}
	options := home.Options{Disposable: true, Credential: &key}
	if o.Netns {
		options.Listen = controlIP + ":7443"
	}
	if err := r.makeHome(options); err != nil {
		return nil, err
	}
	r.key = key
	if o.Netns {
		n, err := makeNetwork()
		if err != nil {
			return nil, err
		}
		r.net = n
	}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// makeHome makes the home as the user that will run it.
func (r *Rig) makeHome(options home.Options) error {
	dir := filepath.Join(r.Dir, "home")
	h, err := home.Ensure(dir, options)
	if err != nil {
		return err
	}
	r.Home = h
	// A rig runs the parts by themselves, without howdah up, which would keep the network.
	if r.release, err = home.Claim(h.Network); err != nil {
		return err
	}
	if r.User == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, int(r.User.UID), int(r.User.GID))
	})
}

func (r *Rig) start(ctx context.Context) error {
	pair, err := certs.Load(r.Home.CertDir())
	if err != nil {
		return err
	}
	config, err := pair.ClientTLS()
	if err != nil {
		return err
	}
	r.http = &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: patience.For(30 * time.Second)}
	for _, name := range r.Parts() {
		if err := r.StartPart(name); err != nil {
			return err
		}
		if strings.HasPrefix(name, "serve") && r.Serves > 1 {
			if err := r.waitServe(ctx, pair, name); err != nil {
				return err
			}
		}
	}
	var urls []string
	for n := range max(r.Serves, 1) {
		urls = append(urls, "https://"+net.JoinHostPort(r.serveIP(n+1), "2379"))
	}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	client, err := etcd.Dial(ctx, urls, pair)
	if err != nil {
		return err
	}
	r.Store = &state.Store{Client: client}
	return r.Wait(startWithin, func() error {
		live, err := r.aliveHosts(ctx)
		if err == nil && live < len(Zones) {
			err = fmt.Errorf("%d hosts are alive", live)
		}
		return err
	})
}

// serveIP returns the address of the n-th control plane. Only a rig with one control plane has
// namespaces.
func (r *Rig) serveIP(n int) string {
	if r.Netns {
		return controlIP
	}
	return r.Home.Address(0, n)
}

// waitServe waits until a control plane is a full member, because only one can join at a time.
func (r *Rig) waitServe(ctx context.Context, pair certs.Pair, name string) error {
	client, err := etcd.Dial(ctx, []string{"https://" + net.JoinHostPort(r.serveIP(1), "2379")}, pair)
	if err != nil {
		return err
	}
	defer client.Close()
	return r.Wait(60*time.Second, func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		urls, err := etcd.ClientURLs(ctx, client)
		if err == nil && len(urls) < r.serveNumber(name) {
			err = fmt.Errorf("%s has not joined: %v", name, urls)
		}
		return err
	})
}

// serveNumber returns n for the n-th control plane: "serve", "serve2", "serve3".
func (r *Rig) serveNumber(name string) int {
	if name == "serve" {
		return 1
	}
	return int(name[len("serve")] - '0')
}

func (r *Rig) aliveHosts(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	records, err := state.List[struct {
		Alive bool `json:"alive"`
	}](ctx, r.Store, state.LiveRoot)
	n := 0
	for _, live := range records {
		if live.Value.Alive {
			n++
		}
	}
	return n, err
}

// Parts returns the names of the processes, in the order of their start.
func (r *Rig) Parts() []string {
	names := []string{"serve"}
	for n := 2; n <= r.Serves; n++ {
		names = append(names, fmt.Sprintf("serve%d", n))
	}
	if r.Moving {
		for _, z := range Zones {
			names = append(names, "edge-"+z)
		}
	} else {
		names = append(names, "edge")
	}
	for _, z := range Zones {
		names = append(names, "agent-"+z)
	}
	return names
}

// command returns the command that runs a part.
func (r *Rig) command(name string) ([]string, error) {
	switch {
	case name == "serve":
		args := []string{r.program(name), "serve", "--home", r.Home.Dir}
		if r.Netns {
			args = append(args, "--address", controlIP, "--endpoint-pool", r.pool())
		}
		return append(args, r.Serve...), nil
	case strings.HasPrefix(name, "serve"):
		return r.furtherServe(r.serveNumber(name))
	case strings.HasPrefix(name, "edge-"):
		return r.hostEdge(strings.TrimPrefix(name, "edge-"))
	case name == "edge":
		args := []string{r.program(name), "edge", "--home", r.Home.Dir}
		if r.Netns {
			args = append(args, "--endpoint-pool", endpointPool)
		}
		return append(args, r.Edge...), nil
	}
	zone := strings.TrimPrefix(name, "agent-")
	if !r.Netns {
		return []string{r.program(name), "agent", "--home", r.Home.Dir, "--az", zone}, nil
	}
	token, err := r.tokenFile("agent")
	if err != nil {
		return nil, err
	}
	return []string{"ip", "netns", "exec", r.net.host(zone), r.program(name), "agent", "--home", r.HostDir(zone),
		"--join", "https://" + r.Home.Listen, "--token-file", token, "--az", zone, "--address", hostIP(zone)}, nil
}

// program returns the program that a part runs.
func (r *Rig) program(part string) string { return cmp.Or(r.Programs[part], r.Binary) }

// pool returns the range of endpoint addresses. They are reached through us, or are in the hosts'
// own network.
func (r *Rig) pool() string {
	if r.Moving {
		return movingPool
	}
	return endpointPool
}

// hostEdge returns the command of an edge on a host, which shares addresses with the edges on the
// other hosts.
func (r *Rig) hostEdge(zone string) ([]string, error) {
	token, err := r.tokenFile("agent")
	if err != nil {
		return nil, err
	}
	return r.HostCommand(zone, r.Binary, "edge", "--home", filepath.Join(r.Dir, "edge-"+zone), "--name", "edge-"+zone,
		"--join", "https://"+r.Home.Listen, "--token-file", token, "--endpoint-pool", movingPool, "--own", "zone-"+zone), nil
}

// furtherServe returns the command of a control plane that joins the first one.
func (r *Rig) furtherServe(n int) ([]string, error) {
	token, err := r.tokenFile("server")
	if err != nil {
		return nil, err
	}
	args := []string{r.Binary, "serve", "--home", filepath.Join(r.Dir, fmt.Sprintf("home%d", n)), "--name", fmt.Sprintf("s%d", n),
		"--address", r.serveIP(n), "--join", "https://" + r.Home.Listen, "--token-file", token, "--endpoint-pool", r.Home.EndpointPool()}
	return append(args, r.Serve...), nil
}

func (r *Rig) tokenFile(kind string) (string, error) {
	tokens, err := r.Home.Join()
	if err != nil {
		return "", err
	}
	token := tokens.AgentToken
	if kind == "server" {
		token = tokens.ServerToken
	}
	path := filepath.Join(r.Dir, "token-"+kind)
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		return "", fmt.Errorf("write token: %w", err)
	}
	return path, nil
}

// HostDir returns the directory of a host.
func (r *Rig) HostDir(zone string) string {
	if r.Netns {
		return filepath.Join(r.Dir, "host-"+zone)
	}
	return r.Home.HostDir(zone)
}

// Close stops everything, and leaves nothing behind except files.
func (r *Rig) Close() error {
	var errs []error
	for _, name := range r.Parts() {
		if p := r.part(name); p != nil {
			p.kill()
		}
	}
	if r.stop != nil {
		r.stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(time.Minute))
	defer cancel()
	for _, z := range Zones {
		errs = append(errs, database.StopHost(ctx, r.Home.ID, "zone-"+z, r.HostDir(z), true))
	}
	cfg := endpoint.Config{Home: r.Home.ID, RunDir: r.runDir() + "/ep"}
	if r.User != nil {
		// A driver does not take over what belongs to another user.
		errs = append(errs, os.Lchown(cfg.RunDir, os.Geteuid(), -1))
	}
	errs = append(errs, driver.Remove(ctx, cfg), os.RemoveAll(r.runDir()))
	if r.net != nil {
		errs = append(errs, r.net.remove())
	}
	r.release()
	return errors.Join(errs...)
}

func (r *Rig) runDir() string {
	if r.User != nil {
		return fmt.Sprintf("/tmp/howdah-%d-%s", r.User.UID, r.Home.ID)
	}
	return home.RunDir(r.Home.ID)
}

// Wait calls check until it returns nil.
func (r *Rig) Wait(within time.Duration, check func() error) error {
	within = patience.For(within)
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", within, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// part is one process.
type part struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// StartPart starts a part that does not run.
func (r *Rig) StartPart(name string) error {
	args, err := r.command(name)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(r.Dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", name, err)
	}
	defer log.Close()
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	// If a rig dies, its parts die with it. Close ends the databases.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if r.User != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: r.User.UID, Gid: r.User.GID}
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.Dir, pgversion.Offer()}
	}
	p := &part{cmd: cmd, done: make(chan struct{})}
	if err := p.start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts[name] = p
	return nil
}

// start keeps the thread that starts the process until that has ended. The process would be killed if
// the thread ended (see testkit.Start).
func (p *part) start() error {
	started := make(chan error)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its log says why it ended
		}
	}()
	return <-started
}

func (r *Rig) part(name string) *part {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parts[name]
}

// PID returns the process id of a part.
func (r *Rig) PID(name string) int { return r.part(name).cmd.Process.Pid }

// KillPart kills a part for good and waits for its end.
func (r *Rig) KillPart(name string) { r.part(name).kill() }

func (p *part) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

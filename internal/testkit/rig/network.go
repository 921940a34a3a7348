package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"howdah/internal/testkit/patience"
)

// These are addresses of a rig with namespaces. The control plane, the edge and the clients are
// where the rig itself runs. The hosts are beside it on one segment.
const (
	controlIP    = "10.99.0.1"
	endpointPool = "10.99.8.0/24"
	movingPool   = "10.99.0.128/25"
)

func hostIP(zone string) string { return fmt.Sprintf("10.99.0.%d", 11+strings.Index("abc", zone)) }

// networks counts the networks of this process. The kernel removes the links of a namespace some
// time after the namespace.
var networks atomic.Int32

// network is a bridge with a namespace for each host.
type network struct{ id string }

func makeNetwork() (*network, error) {
	n := &network{id: fmt.Sprintf("hd%d-%d", os.Getpid(), networks.Add(1))}
	commands := []string{
		"ip link add " + n.bridge() + " type bridge",
		"ip addr add " + controlIP + "/24 dev " + n.bridge(),
		"ip link set " + n.bridge() + " up",
		// Hosts reach endpoints, as replicas do, through us, and always will.
		"sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.send_redirects=0 net.ipv4.conf." + n.bridge() + ".send_redirects=0",
	}
	for _, z := range Zones {
		commands = append(commands,
			"ip netns add "+n.host(z),
			fmt.Sprintf("ip link add %s type veth peer name eth0 netns %s", n.link(z), n.host(z)),
			fmt.Sprintf("ip link set %s master %s up", n.link(z), n.bridge()),
			fmt.Sprintf("ip netns exec %s ip link set lo up", n.host(z)),
			fmt.Sprintf("ip netns exec %s ip addr add %s/24 dev eth0", n.host(z), hostIP(z)),
			fmt.Sprintf("ip netns exec %s ip link set eth0 up", n.host(z)),
			fmt.Sprintf("ip netns exec %s ip route add %s via %s", n.host(z), endpointPool, controlIP),
		)
	}
	for _, c := range commands {
		if err := run(c); err != nil {
			return nil, errors.Join(err, n.remove())
		}
	}
	if err := plainSwitch(); err != nil {
		return nil, errors.Join(err, n.remove())
	}
	return n, nil
}

// bridgeTranslates exists if the kernel's bridges translate addresses.
const bridgeTranslates = "/proc/sys/net/bridge/bridge-nf-call-iptables"

// plainSwitch makes our bridge pass on what it gets, as a switch does. A bridge that translates
// would itself lead a host to an endpoint that is on that very host, and a bridge sends nothing
// back to where it came from.
func plainSwitch() error {
	err := os.WriteFile(bridgeTranslates, []byte("0"), 0o644)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("make a plain switch of the bridge: %w", err)
	}
	return nil
}

func (n *network) bridge() string          { return n.id + "br" }
func (n *network) host(zone string) string { return n.id + zone }
func (n *network) link(zone string) string { return n.id + "v" + zone }

func (n *network) remove() error {
	var errs []error
	for _, z := range Zones {
		errs = append(errs, run("ip netns del "+n.host(z)))
	}
	return errors.Join(append(errs, run("ip link del "+n.bridge()))...)
}

func run(command string) error {
	words := strings.Fields(command)
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(10*time.Second))
	defer cancel()
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// CutLink cuts a host off from everything else. Its own clients still reach it.
func (r *Rig) CutLink(zone string) error { return run("ip link set " + r.net.link(zone) + " down") }

// HealLink undoes CutLink.
func (r *Rig) HealLink(zone string) error { return run("ip link set " + r.net.link(zone) + " up") }

// HostCommand returns the command that runs a program on a host, for clients that live there.
func (r *Rig) HostCommand(zone string, args ...string) []string {
	if !r.Netns {
		return args
	}
	return append([]string{"ip", "netns", "exec", r.net.host(zone)}, args...)
}

const isolatedMark = "HOWDAH_RIG_ISOLATED"

// Isolate runs this very program again in a network namespace of its own, with only a loopback
// interface, and exits with its exit code. In that second run it returns true at once. Call it
// first in main or TestMain. Without root it returns false, because nothing can be isolated.
func Isolate() bool {
	if os.Geteuid() != 0 {
		return false
	}
	if os.Getenv(isolatedMark) != "" {
		if err := run("ip link set lo up"); err != nil {
			fmt.Fprintln(os.Stderr, "isolate:", err)
			os.Exit(1)
		}
		return true
	}
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), isolatedMark+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	}
	fmt.Fprintln(os.Stderr, "isolate:", err)
	os.Exit(1)
	return false
}

package parts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/edge"
	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/announce"
	"howdah/internal/edge/endpoint/driver"
	"howdah/internal/edge/held"
	"howdah/internal/edge/nameserver"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
)

// edgeFlags are the flags of `howdah edge`.
type edgeFlags struct {
	join, tokenFile, name, driver, pool, public, own string
	masquerade                                       bool
	listen                                           ListenFlag
}

func newEdge(o *cli.Options) *cobra.Command {
	var f edgeFlags
	cmd := &cobra.Command{
		Use:   "edge",
		Short: "Run an edge: it leads clients of database endpoints to the right member",
		Args:  cli.Args(cobra.NoArgs),
		Long: "Gives each database its address, in the kernel if that is allowed. It follows every change of primaries. What " +
			"it made goes on working while it does not run.",
		Example: "  howdah edge --join https://10.0.0.1:7443 --token-file token --endpoint-pool 10.0.1.0/24",
		RunE:    func(cmd *cobra.Command, _ []string) error { return runEdge(cmd.Context(), o, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.join, "join", "", "URL of the control plane")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the join token")
	flags.StringVar(&f.name, "name", "edge", "name of this edge, unique in the home")
	flags.StringVar(&f.driver, "driver", "", "nft or haproxy (default: the kernel's nftables where that is allowed)")
	flags.StringVar(&f.pool, "endpoint-pool", "", "addresses outside 127.0.0.0/8 that endpoints may have, as CIDR")
	flags.StringVar(&f.public, "public-pool", "", "addresses outside 127.0.0.0/8 of endpoints that are publicly accessible, as CIDR (default: the home's, where the edge belongs to one on this machine)")
	flags.StringVar(&f.own, "own", "", "name of the host that this edge is on: it then serves only endpoints whose primary is on this host, and their addresses move with the primary (needs an edge on every host, and a pool in the hosts' own network)")
	flags.BoolVar(&f.masquerade, "masquerade", false, "let members see this machine's address in place of the client's; needed if their answers would not come back this way")
	f.listen.Add(cmd, fmt.Sprintf("port %d on loopback; port %d on an address of the home's own, or %d if not root, where the edge belongs to one on this machine", nameserver.OtherPort, nameserver.Port, nameserver.OtherPort))
	cli.CompleteFiles(cmd, "token-file")
	cli.Complete(cmd, "driver", cobra.FixedCompletions([]string{"nft", "haproxy"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runEdge(ctx context.Context, o *cli.Options, f edgeFlags) error {
	log := cli.NewLog("edge")
	options := joinOptions{dir: o.Home, kind: hostapi.Edge, name: f.name, url: f.join}
	standard := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), nameserver.OtherPort)
	if f.join != "" {
		token, err := readToken(f.tokenFile)
		if err != nil {
			return err
		}
		options.token = token
	} else if h, err := home.Open(o.Home); err == nil {
		options.dir = h.EdgeDir()
		if f.public == "" {
			f.public = h.PublicPool
		}
		if err := localJoin(h, &options); err != nil {
			return err
		}
		if standard, err = NamesAt(h); err != nil {
			return err
		}
	}
	names, err := f.listen.At(standard)
	if err != nil {
		return err
	}
	if err := mkdirAll(options.dir); err != nil {
		return err
	}
	lock, err := home.LockFile(filepath.Join(options.dir, EdgeLock))
	if err != nil {
		return err
	}
	defer lock.Release()
	raisePriority(log)
	m, pair, err := ensureMember(ctx, options, log)
	if err != nil {
		return err
	}
	settings, err := f.endpoints(m.HomeID, log)
	if err != nil {
		return err
	}
	if err := home.MakeRunDir(m.HomeID); err != nil {
		return err
	}
	forwarder, info, err := driver.Open(ctx, settings)
	if err != nil {
		return err
	}
	identity, err := certs.NewIdentity(pair)
	if err != nil {
		return err
	}
	config, err := identity.ClientTLS()
	if err != nil {
		return err
	}
	client, err := etcd.Dial(ctx, m.Etcd, identity)
	if err != nil {
		return err
	}
	defer client.Close()
	go followEtcd(ctx, options.dir, client, log)
	go keepIdentity(ctx, options, identity, client, log)
	answers := nameserver.New(names, log)
	answers.KeepIn(filepath.Join(options.dir, namesFile))
	settled := edge.Config{
		Name: f.name, Version: o.Version, Store: &state.Store{Client: client}, Forwarder: forwarder, Info: info, TLS: config, Log: log,
		Own: f.own, Announce: announce.Address, Serves: settings.Serves, Names: answers,
	}
	if f.own != "" {
		record := held.RecordOf(m.HomeID, f.own)
		lock, err := lockHeld(ctx, record)
		if err != nil {
			return err
		}
		defer lock.Release()
		settled.Keep = record.Write
		if settled.Kept, err = record.Read(); err != nil {
			log.Warn("read what the edge before this one held", "error", err)
		}
	}
	return edge.New(settled).Run(ctx)
}

// namesFile is where an edge keeps the names that it answers for, in its directory.
const namesFile = "names.json"

// NamesAt returns where the edge of a home on one machine answers for names unless it is told
// otherwise.
func NamesAt(h *home.Home) (netip.AddrPort, error) {
	address, err := netip.ParseAddr(h.Address(0, nameserver.Port))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("network of the home: %w", err)
	}
	return netip.AddrPortFrom(address, nameserver.DefaultPort()), nil
}

// lockHeld takes the addresses of this host over from an earlier edge. The agent may be looking at
// what that edge left. This takes the agent a few seconds at most.
func lockHeld(ctx context.Context, record held.Record) (*home.Lock, error) {
	for end := time.Now().Add(30 * time.Second); ; {
		lock, err := record.Lock()
		if !errors.Is(err, home.ErrLocked) || time.Now().After(end) || ctx.Err() != nil {
			return lock, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// endpoints returns how this edge makes endpoints real.
func (f edgeFlags) endpoints(homeID string, log *slog.Logger) (endpoint.Config, error) {
	cfg := endpoint.Config{
		Home: homeID, RunDir: home.RunDir(homeID) + "/ep", Driver: f.driver, Masquerade: f.masquerade, Log: log,
	}
	for _, p := range []struct{ flag, value string }{{"--endpoint-pool", f.pool}, {"--public-pool", f.public}} {
		if p.value == "" {
			continue
		}
		pool, err := netip.ParsePrefix(p.value)
		if err != nil {
			return cfg, fmt.Errorf("%s: %w", p.flag, err)
		}
		cfg.Pools = append(cfg.Pools, pool)
	}
	return cfg, nil
}

func mkdirAll(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return nil
}

// raisePriority lets the part that guards databases run before the load that they carry. Otherwise
// a busy machine could look like a lost one. Only root may raise it.
func raisePriority(log *slog.Logger) {
	if os.Geteuid() != 0 {
		return
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, -10); err != nil {
		log.Info("priority not raised", "error", err)
	}
}

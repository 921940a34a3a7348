package parts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/host/agent"
	"howdah/internal/host/database"
	"howdah/internal/host/hang"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/state/etcd"
)

// agentFlags are the flags of `howdah agent`.
type agentFlags struct {
	join, token, tokenFile, zone, name, address string
	hang                                        hang.Patience
}

func newAgent(o *cli.Options) *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run a host: the databases that the control plane puts on this machine",
		Args:  cli.Args(cobra.NoArgs),
		Long: "Runs the databases that the control plane puts on this machine. They go on when the agent ends. A machine joins " +
			"once, with a token. After that it starts without one.",
		Example: "  howdah agent --join https://10.0.0.1:7443 --token-file token --az a --name db1 --address 10.0.0.2",
		RunE:    func(cmd *cobra.Command, _ []string) error { return runAgent(cmd.Context(), o, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.join, "join", "", "URL of the control plane, as `howdah status --join` prints it")
	flags.StringVar(&f.token, "token", "", "join token; better in a file: an argument is seen by everyone on the machine")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the join token")
	flags.StringVar(&f.zone, "az", "", "Availability Zone of this host: a, b, c, …")
	flags.StringVar(&f.name, "name", "", "name of this host, unique in the home (default: zone-ZONE)")
	flags.StringVar(&f.address, "address", "", "IP address of this host, as others reach it")
	flags.DurationVar(&f.hang.Silence, "silence", hang.DefaultPatience.Silence,
		"how long a PostgreSQL may answer nobody, while none of its processes does anything, before it counts as hanging")
	flags.DurationVar(&f.hang.Stall, "stall", hang.DefaultPatience.Stall,
		"how long a small write may wait for the disk before its PostgreSQL counts as hanging")
	cli.CompleteFiles(cmd, "token-file")
	return cmd
}

// leastPatience is the least value of --silence. The agent asks PostgreSQL once a second, and a
// PostgreSQL that is asked needs time to answer.
const leastPatience = 2 * time.Second

func runAgent(ctx context.Context, o *cli.Options, f agentFlags) error {
	if f.zone == "" {
		return fmt.Errorf("--az is needed: %w", cli.ErrUsage)
	}
	if f.name == "" {
		f.name = "zone-" + f.zone
	}
	if !hostapi.ValidName(f.zone) || !hostapi.ValidName(f.name) {
		return fmt.Errorf("names of zones and hosts have lower-case letters, digits and hyphens: %w", cli.ErrUsage)
	}
	log := cli.NewLog("agent").With("host", f.name)
	dir, options, err := agentPlace(o.Home, &f)
	if err != nil {
		return err
	}
	if f.hang.Silence < leastPatience || f.hang.Stall < f.hang.Silence {
		return fmt.Errorf("--silence is %s at least, and --stall no less than it: %w", leastPatience, cli.ErrUsage)
	}
	if net.ParseIP(f.address) == nil {
		return fmt.Errorf("--address: %q is no IP address: %w", f.address, cli.ErrUsage)
	}
	lock, err := home.LockFile(filepath.Join(dir, AgentLock))
	if err != nil {
		return err
	}
	defer lock.Release()
	raisePriority(log)
	m, pair, err := ensureMember(ctx, options, log)
	if err != nil {
		return err
	}
	identity, err := certs.NewIdentity(pair)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	databases, err := database.NewHost(database.Config{Hang: f.hang, Program: program})
	if err != nil {
		return err
	}
	a, err := agent.New(ctx, agent.Config{
		Name: f.name, Zone: f.zone, Address: f.address, Dir: dir, HomeID: m.HomeID, Version: o.Version,
		Etcd: m.Etcd, Control: m.Control, Identity: identity, Log: log, Kind: databases,
		Remember: func(control []string) {
			kept, _, err := loadMember(options.dir)
			if err == nil {
				kept.Control = control
				err = kept.keep(options.dir)
			}
			if err != nil {
				log.Warn("remember control planes", "error", err)
			}
		},
	})
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
	return a.Run(ctx, client)
}

// agentPlace returns the directory in which an agent keeps its files, and how it joins. Without
// --join the agent is one of the hosts of `howdah up`, and finds that home on disk.
func agentPlace(dir string, f *agentFlags) (string, joinOptions, error) {
	o := joinOptions{dir: dir, kind: hostapi.Agent, name: f.name, url: f.join, token: f.token}
	if f.join != "" {
		if f.token != "" {
			return dir, o, nil
		}
		token, err := readToken(f.tokenFile)
		o.token = token
		return dir, o, err
	}
	h, err := home.Open(dir)
	if errors.Is(err, home.ErrNone) {
		return dir, o, nil // a member already, if it has joined before
	}
	if err != nil {
		return "", o, err
	}
	if err := CheckMounted(h); err != nil {
		return "", o, err
	}
	o.dir = h.HostDir(f.zone)
	if f.address == "" {
		f.address = h.Address(1, 1+slices.Index(cli.Zones, f.zone))
	}
	return o.dir, o, errors.Join(mkdirAll(o.dir), localJoin(h, &o))
}

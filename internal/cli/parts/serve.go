package parts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/control/judge"
	"howdah/internal/control/plan"
	"howdah/internal/control/serve"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/state/etcd"
)

// leastQuota is the least quota of etcd, in MiB. It is that small for tests.
const leastQuota = 16

func newServe(o *cli.Options) *cobra.Command {
	var name, address, listen, join, tokenFile, pool, stonith string
	var detection, replaceAfter time.Duration
	var noOvercommit bool
	var quota int64
	var relay RelayFlags
	var public PublicFlag
	var dns ZoneFlag
	var backups BackupFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a control plane: the API and the state",
		Long: "Runs a control plane. The first one makes the home; with --join, further ones become part of it, " +
			"and with three of them any one may die.",
		Args: cli.Args(cobra.NoArgs),
		Example: "  howdah serve --address 10.0.0.1 --listen 10.0.0.1:7443\n" +
			"  howdah serve --name s2 --join https://10.0.0.1:7443 --token-file token --address 10.0.0.2",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quota < leastQuota {
				return fmt.Errorf("--etcd-quota is at least %d: %w", leastQuota, cli.ErrUsage)
			}
			cfg := serve.Config{
				EtcdQuota: quota << 20,
				Name:      name, Address: address, Pool: pool, Detection: detection, Stonith: stonith, Version: o.Version,
				Policy: plan.Policy{Overcommit: !noOvercommit, ReplaceAfter: replaceAfter}, Log: cli.NewLog("serve"),
			}
			smtp, err := relay.SMTP()
			if err != nil {
				return err
			}
			pool, err := public.Asked()
			if err != nil {
				return err
			}
			if cfg.Zone, err = dns.Asked(); err != nil {
				return err
			}
			if cfg.Backups, err = backups.Schedule(); err != nil {
				return err
			}
			return runServe(cmd.Context(), o, cfg, home.Options{Listen: listen, SMTP: smtp, PublicPool: pool}, join, tokenFile)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "s1", "name of this control plane, unique among them")
	flags.StringVar(&address, "address", "", "IP address for etcd and for hosts (default: the home's own on loopback)")
	flags.StringVar(&listen, "listen", "", "address of the API, as HOST:PORT")
	flags.StringVar(&join, "join", "", "URL of a running control plane to join")
	flags.StringVar(&tokenFile, "token-file", "", "file with the control plane's join token")
	flags.StringVar(&pool, "endpoint-pool", "", "addresses of database endpoints, as CIDR (default: the home's own on loopback)")
	flags.DurationVar(&detection, "detection", judge.DefaultDetection, "how long a host may be silent before it counts as lost")
	flags.DurationVar(&replaceAfter, "replace-after", time.Minute, "how long a host may be lost before its members are rebuilt elsewhere")
	flags.StringVar(&stonith, "stonith", "", "command that kills a host, given its name; exit code 0 is taken as proof")
	flags.Int64Var(&quota, "etcd-quota", etcd.DefaultQuota>>20, "how large etcd's database may be, in MiB; half of it is kept for failovers")
	flags.BoolVar(&noOvercommit, "no-overcommit", false, "refuse instance classes that do not fit into the hosts")
	relay.Add(cmd)
	public.Add(cmd)
	dns.Add(cmd)
	backups.Add(cmd)
	cli.CompleteFiles(cmd, "token-file")
	return cmd
}

func runServe(ctx context.Context, o *cli.Options, cfg serve.Config, opts home.Options, join, tokenFile string) error {
	h, err := home.Open(o.Home)
	switch {
	case join != "" && (errors.Is(err, home.ErrNone) || err == nil && !serve.HasState(h)):
		h, cfg.Peers, err = joinHome(ctx, o.Home, cfg, opts.Listen, join, tokenFile)
	case errors.Is(err, home.ErrNone):
		h, err = home.Ensure(o.Home, opts)
	}
	if err == nil && (opts.SMTP != nil || opts.PublicPool != nil) {
		h, err = home.Ensure(o.Home, home.Options{SMTP: opts.SMTP, PublicPool: opts.PublicPool})
	}
	if err != nil {
		return err
	}
	cfg.Join = join != ""
	lock, err := h.Lock("serve")
	if err != nil {
		return fmt.Errorf("control plane of this home: %w", err)
	}
	defer lock.Release()
	cfg.Home = h
	if cfg.Address == "" {
		cfg.Address = h.Address(0, 1)
	}
	if cfg.Pool == "" {
		cfg.Pool = h.EndpointPool()
	}
	serve.SaveMemory()
	return serve.Run(ctx, cfg)
}

// joinHome makes a home that is a copy of the home that it joins. It may be called again until the
// new control plane has state of its own.
func joinHome(ctx context.Context, dir string, cfg serve.Config, listen, join, tokenFile string) (*home.Home, string, error) {
	if cfg.Address == "" || net.ParseIP(cfg.Address) == nil {
		return nil, "", fmt.Errorf("--join needs --address, the IP that the others reach: %w", cli.ErrUsage)
	}
	token, err := readToken(tokenFile)
	if err != nil {
		return nil, "", err
	}
	var answer hostapi.ServerJoinAnswer
	err = untilAnswered(ctx, join, token, cfg.Log, func(ctx context.Context) (err error) {
		answer, err = hostapi.JoinServer(ctx, join, token, cfg.Name, serve.PeerAddr(cfg.Address))
		return err
	})
	if err != nil {
		return nil, "", err
	}
	ca, err := certs.ParseCA(answer.CACert, answer.CAKey)
	if err != nil {
		return nil, "", err
	}
	if listen == "" {
		listen = net.JoinHostPort(cfg.Address, fmt.Sprint(home.APIPort))
	}
	answer.Home.Listen = listen
	h, err := home.Copy(dir, answer.Home, answer.Join, answer.Credentials, ca)
	return h, answer.Peers, err
}

// readToken reads a join token from a file. In an argument everyone on the machine could see it.
func readToken(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("--token-file is needed: %w", cli.ErrUsage)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read join token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

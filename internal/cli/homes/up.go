package homes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/parts"
	"howdah/internal/edge/nameserver"
	"howdah/internal/host/proc"
	"howdah/internal/host/supervise"
	"howdah/internal/identity/home"
	"howdah/internal/model/zone"
)

// startTimeout is how long --detach waits for the API.
const startTimeout = 60 * time.Second

// hostsTimeout is how long --detach then waits for the hosts and the edge.
const hostsTimeout = 20 * time.Second

func newUp(o *cli.Options) *cobra.Command {
	var listen, region string
	var credential credentialFlags
	var detach, disposable bool
	var relay parts.RelayFlags
	var public parts.PublicFlag
	var backups parts.BackupFlags
	var dns parts.ZoneFlag
	var listenDNS parts.ListenFlag
	var storage string
	cmd := &cobra.Command{
		Use: "up", Short: "Run a whole Howdah on this machine: control plane, edge and three zones", Args: cli.Args(cobra.NoArgs),
		Long: "Runs one control plane, one edge and three agents that stand for the zones a, b and c, and starts again " +
			"what ends. The first call makes the home. Databases go on when this command ends; `howdah down` stops them.",
		Example: "  howdah up --detach\n  howdah up --home ~/test --detach --disposable",
		RunE: func(cmd *cobra.Command, _ []string) error {
			smtp, err := relay.SMTP()
			if err != nil {
				return err
			}
			pool, err := public.Asked()
			if err != nil {
				return err
			}
			opts := home.Options{Listen: listen, Region: region, Disposable: disposable, SMTP: smtp, PublicPool: pool}
			if opts.Credential, err = credential.read(o, cmd); err != nil {
				return err
			}
			if _, err := backups.Schedule(); err != nil {
				return err
			}
			asked, err := dns.Asked()
			if err != nil {
				return err
			}
			if _, err := listenDNS.At(netip.AddrPort{}); err != nil {
				return err
			}
			disk, err := parseStorage(storage)
			if err != nil {
				return err
			}
			opts.Storage = disk.file
			if err := checkUp(o.Home, opts); err != nil {
				return err
			}
			if err := disk.make(cmd.Context(), o); err != nil {
				return err
			}
			h, err := home.Ensure(o.Home, opts)
			if err != nil {
				return err
			}
			o.At = h
			if credential.inArguments() {
				return forget(o)
			}
			args := partArgs{serve: slices.Concat(backups.Args(), dns.Args()), edge: listenDNS.Args()}
			if detach {
				return upDetached(cmd.Context(), o, h, args, asked)
			}
			return up(cmd.Context(), o, h, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "", "address of the API, as IP:PORT (default: port 7443 on an address of the home's own)")
	flags.StringVar(&region, "region", "", "region of a new home (default "+home.DefaultRegion+")")
	flags.BoolVar(&detach, "detach", false, "go on in the background, and return when the API answers")
	flags.StringVar(&storage, "storage", "", "as root, keep a new home's databases in a file system of their own, as FILE:SIZE (disk.img:20G), where they can be encrypted")
	flags.BoolVar(&disposable, "disposable", false, "a new home may be wiped by `howdah admin wipe`: for test rigs")
	credential.add(cmd)
	relay.Add(cmd)
	public.Add(cmd)
	backups.Add(cmd)
	dns.Add(cmd)
	listenDNS.Add(cmd, fmt.Sprintf("port %d of an address of the home's own, or %d if not root", nameserver.Port, nameserver.OtherPort))
	return cmd
}

// partArgs are the arguments of the control plane and of the edge that users gave to `howdah up`.
type partArgs struct{ serve, edge []string }

func (a partArgs) all() []string { return slices.Concat(a.serve, a.edge) }

// upView is what `howdah up --detach` answers as JSON.
type upView struct {
	Home     string `json:"home"`
	Endpoint string `json:"endpoint"`
	PID      int    `json:"pid"` // of the supervisor
	// Zone is the DNS zone in which databases have names, and Names is where these are answered.
	Zone  string   `json:"dns_zone,omitempty"`
	Names []string `json:"names,omitempty"`
}

// up supervises the parts until it is told to end. The parts end with it. The databases go on until
// `howdah down` stops them.
func up(ctx context.Context, o *cli.Options, h *home.Home, args partArgs) error {
	lock, err := h.Lock("up")
	if errors.Is(err, home.ErrLocked) {
		return fmt.Errorf("this home is up already (process %d)", h.Holder("up"))
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	// Parts of a supervisor that was killed go on without one. Ours take over from them.
	if err := endParts(ctx, h); err != nil {
		return err
	}
	release, err := home.Claim(h.Network)
	if err != nil {
		return err
	}
	defer release()
	if err := mountStorage(ctx, h); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	supervised := []supervise.Part{
		{Name: "serve", Args: append([]string{"serve", "--home", h.Dir}, args.serve...), Log: h.LogFile("serve")},
		{Name: "edge", Args: append([]string{"edge", "--home", h.Dir}, args.edge...), Log: h.LogFile("edge")},
	}
	for _, zone := range cli.Zones {
		supervised = append(supervised, supervise.Part{
			Name: "agent-" + zone, Args: []string{"agent", "--home", h.Dir, "--az", zone}, Log: h.LogFile("agent-" + zone),
		})
	}
	// As process 1 of a container, this process has the children of agents that were killed.
	if err := proc.TakeOrphans(ctx); err != nil {
		return err
	}
	o.Say("Howdah runs at https://%s (home %s). Ctrl-C ends it; databases go on until %s.",
		client.Address(h.Listen), h.Dir, o.Pasteable("howdah down"))
	return supervise.Run(ctx, program, supervised, cli.NewLog("up").With("logs", filepath.Dir(h.LogFile("up"))))
}

// upDetached starts a supervisor that outlives this process, unless there is one, and waits until
// the API answers. asked is the DNS zone that the home shall have; nil: the one that it has.
func upDetached(ctx context.Context, o *cli.Options, h *home.Home, args partArgs, asked *zone.Zone) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var ended <-chan struct{}
	if h.Holder("up") == 0 {
		var err error
		if ended, err = startDetached(ctx, h, args.all()); err != nil {
			return err
		}
	}
	if err := waitAPI(ctx, h, ended); err != nil {
		return err
	}
	status, err := waitHosts(ctx, h)
	if err != nil {
		return err
	}
	if asked != nil && string(*asked) != status.Zone {
		return fmt.Errorf("the home %s is up already, and its DNS zone is %q: end its process %d, and start it again", h.Dir, status.Zone, h.Holder("up"))
	}
	v := upView{Home: h.Dir, Endpoint: "https://" + client.Address(h.Listen), PID: h.Holder("up"), Zone: status.Zone}
	if v.Zone != "" {
		v.Names = waitNames(ctx, h)
	}
	return o.Print(v, func() error {
		o.Say("Howdah is up: %s (home %s)", v.Endpoint, v.Home)
		switch {
		case len(v.Names) > 0:
			o.Say("Databases have names in %s, which are answered at %s. Addresses work as well; what resolvers have to be told: docs/guide/names.md", v.Zone, strings.Join(v.Names, ", "))
		case v.Zone != "":
			o.Say("Databases have names in %s, but the edge does not answer for them: see %s. Addresses work.", v.Zone, h.LogFile("edge"))
		}
		return nil
	})
}

// waitAPI waits until the API of this very home answers, served by a control plane of the
// supervisor. A control plane that a killed supervisor left is about to be replaced.
func waitAPI(ctx context.Context, h *home.Home, ended <-chan struct{}) error {
	api, err := client.FromHome(h)
	if err != nil {
		return err
	}
	for {
		var status admin.Status
		if err := api.Admin(ctx, admin.VerbStatus, admin.Nothing{}, &status); err == nil && status.Home == h.ID && adopted(h) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API did not come up%s: see %s", lastWords(h.LogFile("serve")), h.LogFile("serve"))
		case <-ended:
			// Somebody else may have started a supervisor at the same moment.
			if h.Holder("up") == 0 {
				return fmt.Errorf("the supervisor ended%s: see %s", lastWords(h.LogFile("up")), h.LogFile("up"))
			}
			ended = nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// waitHosts waits until all hosts and the edge are there, so that a database can be created at
// once. It returns the status of then.
func waitHosts(ctx context.Context, h *home.Home) (admin.Status, error) {
	api, err := client.FromHome(h)
	if err != nil {
		return admin.Status{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, hostsTimeout)
	defer cancel()
	for {
		var status admin.Status
		missing := append([]string{"edge"}, cli.AgentNames()...)
		if err := api.Admin(ctx, admin.VerbStatus, admin.Nothing{}, &status); err == nil {
			missing = absent(status)
		}
		if len(missing) == 0 {
			return status, nil
		}
		select {
		case <-ctx.Done():
			log := h.LogFile(missing[0])
			return status, fmt.Errorf("the API answers, but %s did not come up%s: see %s", strings.Join(missing, ", "), lastWords(log), log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// namesTimeout is how long --detach waits for the edge to answer for names. Databases need no names.
const namesTimeout = 5 * time.Second

// waitNames waits until edges answer for names, and returns where, or nothing.
func waitNames(ctx context.Context, h *home.Home) []string {
	api, err := client.FromHome(h)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	for {
		var status admin.Status
		var all []string
		if err := api.Admin(ctx, admin.VerbStatus, admin.Nothing{}, &status); err == nil {
			for _, e := range status.Edges {
				if e.Running && e.Names != "" {
					all = append(all, e.Names)
				}
			}
		}
		if len(all) > 0 {
			return all
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// absent returns the parts that a status does not show.
func absent(s admin.Status) []string {
	var missing []string
	if !slices.ContainsFunc(s.Edges, func(e admin.Edge) bool { return e.Running }) {
		missing = append(missing, "edge")
	}
	for _, zone := range cli.Zones {
		if !slices.ContainsFunc(s.Hosts, func(h admin.Host) bool { return h.Zone == zone && h.State == admin.HostAlive }) {
			missing = append(missing, "agent-"+zone)
		}
	}
	return missing
}

// adopted reports whether the control plane is a child of the supervisor.
func adopted(h *home.Home) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.Holder("serve")))
	return err == nil && strings.Contains(string(text), fmt.Sprintf("\nPPid:\t%d\n", h.Holder("up")))
}

// lastWords returns the error that a program ended with, from its log.
func lastWords(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return ""
	}
	words := ""
	for line := range strings.Lines(string(text)) {
		if message, ok := strings.CutPrefix(line, "howdah: "); ok {
			words = ": " + strings.TrimSpace(message)
		}
	}
	return words
}

// startDetached starts a supervisor. The channel is closed if the supervisor ends while this
// process waits.
func startDetached(ctx context.Context, h *home.Home, serveArgs []string) (<-chan struct{}, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	log, err := supervise.OpenLog(h.LogFile("up"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, append([]string{"up", "--home", h.Dir}, serveArgs...)...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), supervise.LogVariable+"="+h.LogFile("up"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start in the background: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log says why it ended
		close(ended)
	}()
	return ended, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/home"
	"howdah/internal/supervise"
)

// startTimeout is how long --detach waits for the API.
const startTimeout = 60 * time.Second

// zones are the hosts of `howdah up`, each an Availability Zone of its own.
var zones = []string{"a", "b", "c"}

func newUp(o *options) *cobra.Command {
	var listen, region, credential string
	var detach, disposable bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a whole Howdah on this machine: control plane, edge and three zones",
		Long: "Runs one control plane, one edge and three agents that stand for the zones a, b and c, and starts again " +
			"what ends. The first call makes the home. Databases go on when this command ends by a crash; `howdah down` stops them.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts := home.Options{Listen: listen, Region: region, Disposable: disposable}
			if credential != "" {
				c, err := home.ParseCredential(credential)
				if err != nil {
					return fmt.Errorf("--credential: %w", err)
				}
				opts.Credential = &c
			}
			h, err := home.Ensure(o.home, opts)
			if err != nil {
				return err
			}
			if detach {
				return upDetached(cmd.Context(), h)
			}
			return up(cmd.Context(), h)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "", "address of the API, as HOST:PORT (default: port 7443 on an address of the home's own)")
	flags.StringVar(&region, "region", "", "region of a new home (default "+home.DefaultRegion+")")
	flags.BoolVar(&detach, "detach", false, "go on in the background, and return when the API answers")
	flags.BoolVar(&disposable, "disposable", false, "a new home may be wiped by `howdah admin wipe`: for test rigs")
	flags.StringVar(&credential, "credential", "", "access key of the API, as KEY:SECRET[:ACCOUNT] (default: one is made)")
	return cmd
}

// up supervises the parts until it is told to end. The parts end with it; the
// databases do not: `howdah down` stops those.
func up(ctx context.Context, h *home.Home) error {
	lock, err := h.Lock("up")
	if errors.Is(err, home.ErrLocked) {
		return fmt.Errorf("this home is up already (process %d)", h.Holder("up"))
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	release, err := home.Claim(h.Network)
	if err != nil {
		return err
	}
	defer release()
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	parts := []supervise.Part{
		{Name: "serve", Args: []string{"serve", "--home", h.Dir}, Log: h.LogFile("serve")},
		{Name: "edge", Args: []string{"edge", "--home", h.Dir}, Log: h.LogFile("edge")},
	}
	for _, zone := range zones {
		parts = append(parts, supervise.Part{
			Name: "agent-" + zone, Args: []string{"agent", "--home", h.Dir, "--az", zone}, Log: h.LogFile("agent-" + zone),
		})
	}
	return supervise.Run(ctx, program, parts, newLog("up"))
}

// upDetached starts a supervisor that outlives us, unless there is one, and waits
// until the API answers.
func upDetached(ctx context.Context, h *home.Home) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if h.Holder("up") == 0 {
		if err := startDetached(h); err != nil {
			return err
		}
	}
	for {
		conn, err := net.DialTimeout("tcp", h.Listen, time.Second)
		if err == nil {
			conn.Close()
			fmt.Printf("Howdah is up: https://%s (home %s)\n", h.Listen, h.Dir)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API did not come up within %s: see %s", startTimeout, h.LogFile("serve"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func startDetached(h *home.Home) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	log, err := os.OpenFile(h.LogFile("up"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(program, "up", "--home", h.Dir)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	return cmd.Process.Release()
}

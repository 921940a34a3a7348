package agent

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"howdah/internal/hostapi"
)

// Beat is how often a host says that it is alive.
const Beat = 400 * time.Millisecond

// controls are the control planes of the home.
type controls struct{ clients []*hostapi.Client }

func newControls(cfg Config) (*controls, error) {
	c := &controls{}
	for _, url := range cfg.Control {
		client, err := hostapi.NewClient(url, cfg.Pair)
		if err != nil {
			return nil, err
		}
		c.clients = append(c.clients, client)
	}
	return c, nil
}

func (c *controls) all() []*hostapi.Client { return c.clients }

// run beats to every control plane, each on its own: a slow one does not delay
// the others.
func (c *controls) run(ctx context.Context, log *slog.Logger) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, client := range c.clients {
		group.Go(func() error {
			beat(ctx, client, log)
			return nil
		})
	}
	return group.Wait()
}

func beat(ctx context.Context, client *hostapi.Client, log *slog.Logger) {
	silent := false
	for {
		call, cancel := context.WithTimeout(ctx, 2*Beat)
		err := client.Heartbeat(call)
		cancel()
		if (err != nil) != silent && ctx.Err() == nil {
			silent = err != nil
			log.Info("control plane", "url", client.URL, "answers", !silent)
		}
		if !sleep(ctx, Beat) {
			return
		}
	}
}

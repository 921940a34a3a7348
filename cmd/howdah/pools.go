package main

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"howdah/internal/identity/home"
)

// publicFlag is the pool of publicly accessible endpoints. The home remembers it.
type publicFlag struct {
	set  *cobra.Command
	pool string
}

func (p *publicFlag) add(cmd *cobra.Command) {
	p.set = cmd
	cmd.Flags().StringVar(&p.pool, "public-pool", "", `addresses of publicly accessible endpoints, as CIDR; the home remembers it; "" takes it away (default: none, all endpoints are private)`)
}

var errPublicPool = errors.New("--public-pool")

// asked returns the pool that was asked for, or nil if the flag was not given.
func (p *publicFlag) asked() (*string, error) {
	if !p.set.Flags().Changed("public-pool") {
		return nil, nil
	}
	if p.pool == "" {
		return &p.pool, nil
	}
	pool, err := netip.ParsePrefix(p.pool)
	if err != nil || !pool.Addr().Is4() || pool.Bits() > 30 {
		return nil, fmt.Errorf("%w %q is not an IPv4 network of at least four addresses, as 203.0.113.0/24: %w", errPublicPool, p.pool, errUsage)
	}
	text := pool.Masked().String()
	return &text, nil
}

// checkPublicPool refuses a pool that overlaps the home's own network. It also refuses another pool
// for a home that runs.
func checkPublicPool(h *home.Home, asked *string) error {
	if asked == nil || *asked == h.PublicPool {
		return nil
	}
	if h.Holder("up") != 0 {
		return fmt.Errorf("the home %s is up already, with another public pool: stop it with howdah down first", h.Dir)
	}
	if *asked == "" {
		return nil
	}
	public, err := netip.ParsePrefix(*asked)
	if err != nil {
		return fmt.Errorf("%w: %w", errPublicPool, err)
	}
	own, err := netip.ParsePrefix(h.EndpointPool())
	if err == nil && public.Overlaps(own) {
		return fmt.Errorf("%w %s has addresses of the home's own pool %s: %w", errPublicPool, public, own, errUsage)
	}
	return nil
}

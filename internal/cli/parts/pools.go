package parts

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
)

// PublicFlag is the pool of publicly accessible endpoints. The home remembers it.
type PublicFlag struct {
	set  *cobra.Command
	pool string
}

// Add gives a command the flag.
func (p *PublicFlag) Add(cmd *cobra.Command) {
	p.set = cmd
	cmd.Flags().StringVar(&p.pool, "public-pool", "", `addresses of publicly accessible endpoints, as CIDR; the home remembers it; "" takes it away (default: none, all endpoints are private)`)
}

// ErrPublicPool marks a public pool that cannot be.
var ErrPublicPool = errors.New("--public-pool")

// Asked returns the pool that was asked for, or nil if the flag was not given.
func (p *PublicFlag) Asked() (*string, error) {
	if !p.set.Flags().Changed("public-pool") {
		return nil, nil
	}
	if p.pool == "" {
		return &p.pool, nil
	}
	pool, err := netip.ParsePrefix(p.pool)
	if err != nil || !pool.Addr().Is4() || pool.Bits() > 30 {
		return nil, fmt.Errorf("%w %q is not an IPv4 network of at least four addresses, as 203.0.113.0/24: %w", ErrPublicPool, p.pool, cli.ErrUsage)
	}
	text := pool.Masked().String()
	return &text, nil
}

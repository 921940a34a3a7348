package parts

import (
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/model/zone"
)

// ZoneFlag is the DNS zone in which databases have names. The state of the home remembers it.
type ZoneFlag struct {
	set  *cobra.Command
	text string
}

// Add gives a command the flag.
func (z *ZoneFlag) Add(cmd *cobra.Command) {
	z.set = cmd
	cmd.Flags().StringVar(&z.text, "dns-zone", "", `private DNS zone in which databases have names, as howdah.internal; the home remembers it; "" takes it away (default: none, endpoints are addresses)`)
}

// Asked returns the zone that was asked for, or nil if the flag was not given.
func (z *ZoneFlag) Asked() (*zone.Zone, error) {
	if !z.set.Flags().Changed("dns-zone") {
		return nil, nil
	}
	var asked zone.Zone
	if z.text != "" {
		var err error
		if asked, err = zone.Parse(z.text); err != nil {
			return nil, fmt.Errorf("--dns-zone: %w: %w", err, cli.ErrUsage)
		}
	}
	return &asked, nil
}

// Args returns the arguments for the control plane that `howdah up` runs.
func (z *ZoneFlag) Args() []string {
	if !z.set.Flags().Changed("dns-zone") {
		return nil
	}
	return []string{"--dns-zone", z.text}
}

// ListenFlag is where an edge answers for the names of databases.
type ListenFlag struct{ text string }

// Add gives a command the flag.
func (l *ListenFlag) Add(cmd *cobra.Command, standard string) {
	cmd.Flags().StringVar(&l.text, "dns-listen", "", "address at which names of databases are answered, as IP:PORT (default: "+standard+")")
}

// At returns the address that was asked for, or else the standard one.
func (l *ListenFlag) At(standard netip.AddrPort) (netip.AddrPort, error) {
	if l.text == "" {
		return standard, nil
	}
	at, err := netip.ParseAddrPort(l.text)
	if err != nil || at.Port() == 0 || at.Addr().IsMulticast() {
		return at, fmt.Errorf("--dns-listen: %q is not IP:PORT, such as 127.0.0.1:5300: %w", l.text, cli.ErrUsage)
	}
	return at, nil
}

// Args returns the arguments for the edge that `howdah up` runs.
func (l *ListenFlag) Args() []string {
	if l.text == "" {
		return nil
	}
	return []string{"--dns-listen", l.text}
}

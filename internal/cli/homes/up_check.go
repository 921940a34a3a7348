package homes

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"

	"howdah/internal/cli"
	"howdah/internal/cli/parts"
	"howdah/internal/identity/home"
)

// regionForm is the form of AWS's regions. SDKs refuse others.
var regionForm = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)

// checkUp refuses options that a home could not be run with, before they are kept. It also refuses
// options that an existing home would ignore.
func checkUp(dir string, o home.Options) error {
	if o.Listen != "" {
		if err := checkListen(o.Listen); err != nil {
			return err
		}
	}
	if o.Region != "" && !regionForm.MatchString(o.Region) {
		return fmt.Errorf("--region: %q is not in the form of us-west-2: %w", o.Region, cli.ErrUsage)
	}
	h, err := home.Open(dir)
	if errors.Is(err, home.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	return checkExisting(h, o)
}

func checkListen(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	number, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || number == 0 || net.ParseIP(host) == nil {
		return fmt.Errorf("--listen: %q is not IP:PORT, such as 127.0.0.1:7443: %w", listen, cli.ErrUsage)
	}
	return nil
}

// checkExisting refuses options that differ from what a home is. Only where it listens may change,
// when it starts.
func checkExisting(h *home.Home, o home.Options) error {
	switch {
	case o.Disposable && !h.Disposable:
		return fmt.Errorf("the home %s was made without --disposable and stays so: use another --home", h.Dir)
	case o.Region != "" && o.Region != h.Region:
		return fmt.Errorf("the home %s is in the region %s and stays there: use another --home", h.Dir, h.Region)
	case o.Storage != "" && o.Storage != h.Storage:
		return fmt.Errorf("the home %s was made with its databases %s, and they stay there: use another --home", h.Dir, placeOf(h))
	case o.Listen != "" && o.Listen != h.Listen && h.Holder("up") != 0:
		return fmt.Errorf("the home %s is up already, and listens on %s: stop it with howdah down first", h.Dir, h.Listen)
	case o.SMTP != nil && h.Holder("up") != 0 && !sameRelay(o.SMTP, h.SMTP):
		return fmt.Errorf("the home %s is up already, with another relay for mail: stop it with howdah down first", h.Dir)
	}
	return checkPublicPool(h, o.PublicPool)
}

// sameRelay reports whether two relays are the same. No relay is the same as one without an
// address.
func sameRelay(asked, has *home.SMTP) bool {
	if has == nil {
		has = &home.SMTP{}
	}
	return *asked == *has
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
		return fmt.Errorf("%w: %w", parts.ErrPublicPool, err)
	}
	own, err := netip.ParsePrefix(h.EndpointPool())
	if err == nil && public.Overlaps(own) {
		return fmt.Errorf("%w %s has addresses of the home's own pool %s: %w", parts.ErrPublicPool, public, own, cli.ErrUsage)
	}
	return nil
}

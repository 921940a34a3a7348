package client

import (
	"context"
	"net"
	"strings"

	"howdah/internal/admin"
)

// Reach returns where an endpoint of a database is, as ip:port, for one that the API shows as
// host:port. Where databases have DNS names, the control plane knows the address, and no resolver has
// to know the home's zone. Whoever may not ask gets the name back, and needs such a resolver.
func (c *Client) Reach(ctx context.Context, endpoint string) string {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil || net.ParseIP(host) != nil {
		return endpoint
	}
	identifier, _, _ := strings.Cut(host, ".")
	var out admin.DatabaseAnswer
	if err := c.Admin(ctx, admin.VerbDatabase, admin.DatabaseRequest{Name: identifier}, &out); err != nil {
		return endpoint
	}
	for _, d := range out.Databases {
		for _, e := range d.Endpoints {
			if e.Host == host {
				return e.Address
			}
		}
	}
	return endpoint
}

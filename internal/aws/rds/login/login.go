// Package login decides whether a token of an SDK lets a user into a database: IAM database
// authentication. Agents ask, on behalf of PostgreSQL. It changes nothing.
//
// Invariants: every decision by a token is in the audit log before it is told; no error holds a
// token.
package login

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/api"
	"howdah/internal/aws/audit"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/spec"
	"howdah/internal/model/zone"
	"howdah/internal/state"
)

// service is what tokens for databases are signed for, and action what policies
// call the login.
const (
	service = "rds-db"
	action  = "connect"
	// maxTokenLife is how long a token may say that it is good for.
	maxTokenLife = 15 * time.Minute
)

// Gate decides. All fields are required.
type Gate struct {
	State *state.Client
	Front *front.Front
	Looks *look.Source
}

// target is a database that tokens may be for.
type target struct {
	spec.Common
	kind  string   // as in ARNs
	hosts []string // that its clients use: addresses, and names in lower case; "" is none
}

// Login decides whether a token lets a user into a database, which is named by its resource id.
// The error is one of hostapi.RefuseToken unless it cannot be decided.
func (g *Gate) Login(ctx context.Context, database, user, token string) error {
	if err := g.State.Fresh(ctx); err != nil {
		return err
	}
	d, ok := g.target(database)
	if !ok || !d.IAMAuth {
		return hostapi.RefuseToken("IAM database authentication is not enabled for " + database)
	}
	resource := "arn:aws:" + service + ":" + d.Region + ":" + d.Account + ":dbuser:" + d.ResourceID + "/" + user
	r := g.Front.BeginOwn(audit.Record{
		RequestID: front.RequestID(), Service: service, Action: action,
		Parameters: map[string]string{"Resource": resource[:min(len(resource), audit.MaxText)]},
	})
	err := g.checkToken(d, user, resource, token, r)
	known, refused := errors.AsType[*wire.Error](err)
	switch {
	case err == nil:
		r.End(http.StatusOK, "")
		return nil
	case refused:
		r.End(known.Status, known.Code)
		return hostapi.RefuseToken(known.Code + ": " + known.Message)
	}
	return err
}

// target finds a database of any account.
func (g *Gate) target(database string) (target, bool) {
	for _, r := range state.LoadAll[spec.Cluster](g.Looks.Cache, state.ClusterRoot) {
		if r.Value.ResourceID != database {
			continue
		}
		l := g.Looks.Of(r.Value.Account)
		in, name := r.Value.Scope, r.Value.Name
		d := target{r.Value.Common, "cluster", slices.Concat([]string{
			r.Value.Address, r.Value.ReaderAddress, g.Looks.NameOf(zone.Writer, in, name), g.Looks.NameOf(zone.Reader, in, name),
		}, r.Value.Former, r.Value.ReaderFormer)}
		for _, i := range l.InstancesOf(database) {
			d.hosts = append(append(d.hosts, i.Address, g.Looks.NameOf(zone.Instance, i.Scope, i.Name)), i.Former...)
		}
		for _, e := range l.EndpointsOf(database) {
			d.hosts = append(append(d.hosts, e.Value.Address, g.Looks.NameOf(zone.Custom, e.Value.Scope, e.Value.Name)), e.Value.Former...)
		}
		return d, true
	}
	for _, r := range state.ViewAll[spec.Instance](g.Looks.Cache, state.InstanceRoot) {
		if r.Value.ResourceID == database && r.Value.Cluster == "" {
			hosts := []string{r.Value.Address, g.Looks.NameOf(zone.Instance, r.Value.Scope, r.Value.Name)}
			return target{r.Value.Common, "db", append(hosts, r.Value.Former...)}, true
		}
	}
	return target{}, false
}

// checkToken refuses a token that is not for this user and this database, not signed
// by a key of its account, or whose key's policies do not allow the login.
func (g *Gate) checkToken(d target, user, resource, token string, r *front.Record) error {
	u, err := url.Parse("https://" + token)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "/" || u.Fragment != "" {
		return badToken("it is not what an SDK makes")
	}
	if err := d.isFor(u, user); err != nil {
		return err
	}
	request := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{}}
	identity, who, err := g.Front.Authenticate(request, nil, r)
	if err != nil {
		return err
	}
	switch {
	case identity.Service != service:
		return badToken("it is signed for the service " + identity.Service)
	case identity.Region != d.Region:
		return badToken("it is signed for the region " + identity.Region)
	case who.Account != d.Account:
		return badToken("its key is of another account")
	}
	c := g.Front.Call(request, identity, who, action, r.RequestID, r)
	c.Secure = true
	asked := c.Context(nil)
	delete(asked, "aws:SourceIp") // PostgreSQL does not tell
	// What the policies say of the database holds for who logs in to it too.
	context, known := c.About(d.ARN(d.kind, d.Name), asked)
	return c.May(resource, context, known)
}

// isFor refuses a token that is for something else, or for longer than a quarter of
// an hour.
func (d target) isFor(u *url.URL, user string) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return badToken("it is not what an SDK makes")
	}
	host, port, err := net.SplitHostPort(u.Host)
	life, errLife := strconv.Atoi(query.Get("X-Amz-Expires"))
	switch {
	case !slices.Equal(query["Action"], []string{action}):
		return badToken("it is not for the action " + action)
	case !slices.Equal(query["DBUser"], []string{user}):
		return badToken("it is for another user")
	case err != nil || host == "" || !slices.Contains(d.hosts, strings.ToLower(host)) || port != strconv.Itoa(d.Port):
		return badToken("it is for another host or port than those of the endpoints")
	case errLife != nil || life < 1 || life > int(maxTokenLife/time.Second):
		return badToken("it is good for longer than 15 minutes")
	}
	return nil
}

func badToken(why string) error {
	return wire.NewError(api.ErrAccessDenied, "The token is refused: %s.", why)
}

package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"howdah/internal/aws/audit"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// tokenOf makes a token as the SDKs do.
func (u *user) tokenOf(host, user string, change func(*tokenParts)) string {
	u.Helper()
	p := tokenParts{host: host, query: "Action=connect&DBUser=" + url.QueryEscape(user), region: u.region, service: "rds-db", at: u.now(), life: 15 * time.Minute}
	if change != nil {
		change(&p)
	}
	r, err := http.NewRequest(http.MethodGet, "https://"+p.host+"/?"+p.query, nil)
	if err != nil {
		u.Fatal(err)
	}
	sigv4.Presign(r, sigv4.Credentials{AccessKeyID: u.key, SecretAccessKey: u.secret}, p.region, p.service, p.at, p.life)
	return strings.TrimPrefix(r.URL.String(), "https://")
}

type tokenParts struct {
	host, query, region, service string
	at                           time.Time
	life                         time.Duration
}

// endpointOf is the address and the port of the only database of a user.
func (u *user) endpointOf() (spec.Common, string) {
	u.Helper()
	l := u.server.rds.Databases.Of(u.account)
	if len(l.Clusters) > 0 {
		c := l.Clusters[0].Value.Common
		return c, c.Address + ":5432"
	}
	i := l.Instances[0].Value.Common
	return i, i.Address + ":5432"
}

// lets: the token lets the user in, or is refused for a reason.
func (u *user) lets(database, user, token, why string) {
	u.Helper()
	err := u.server.Login(u.Context(), database, user, token)
	switch {
	case why == "" && err != nil:
		u.Errorf("%s is refused: %v", user, err)
	case why != "" && (err == nil || !strings.Contains(err.Error(), why)):
		u.Errorf("%s: %v, want a refusal for %q", user, err, why)
	}
	if err != nil && strings.Contains(err.Error(), "X-Amz-Signature=") {
		u.Errorf("the reason holds the token: %v", err)
	}
}

func TestTokens(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB + "&EnableIAMDatabaseAuthentication=true")(u)
	d, at := u.endpointOf()
	id := d.ResourceID
	u.lets(id, "jane", u.tokenOf(at, "jane", nil), "")
	u.lets(id, `J"ane D,ö/é`, u.tokenOf(at, `J"ane D,ö/é`, nil), "")
	good := u.tokenOf(at, "jane", nil)
	for name, c := range map[string]struct {
		user, token, why string
	}{
		"another user":        {"joe", good, "another user"},
		"a user in two cases": {"Jane", good, "another user"},
		"two users":           {"jane", u.tokenOf(at, "jane", func(p *tokenParts) { p.query += "&DBUser=joe" }), "another user"},
		"another action":      {"jane", u.tokenOf(at, "jane", func(p *tokenParts) { p.query = "Action=GetCallerIdentity&DBUser=jane" }), "not for the action"},
		"another host":        {"jane", u.tokenOf("127.0.0.1:5432", "jane", nil), "another host"},
		"another port":        {"jane", u.tokenOf(d.Address+":5433", "jane", nil), "another host"},
		"no port":             {"jane", u.tokenOf(d.Address, "jane", nil), "another host"},
		"another region":      {"jane", u.tokenOf(at, "jane", func(p *tokenParts) { p.region = "eu-west-1" }), "region"},
		"another service":     {"jane", u.tokenOf(at, "jane", func(p *tokenParts) { p.service = "rds" }), "service"},
		"an old one":          {"jane", u.tokenOf(at, "jane", func(p *tokenParts) { p.at = p.at.Add(-16 * time.Minute) }), "expired"},
		"one of the future":   {"jane", u.tokenOf(at, "jane", func(p *tokenParts) { p.at = p.at.Add(time.Hour) }), "expired"},
		"one that lives long": {"jane", u.tokenOf(at, "jane", func(p *tokenParts) { p.life = time.Hour }), "15 minutes"},
		"a changed one":       {"jane", good[:len(good)-1] + flipped(good[len(good)-1]), "signature"},
		"a password":          {"jane", "first-secret", "not what an SDK makes"},
		"nothing":             {"jane", "", "not what an SDK makes"},
		"a URL":               {"jane", "https://" + good, ""},
		"unsigned":            {"jane", at + "/?Action=connect&DBUser=jane", "15 minutes"},
		"unsigned, with life": {"jane", at + "/?Action=connect&DBUser=jane&X-Amz-Expires=900", "signed"},
	} {
		if c.why == "" {
			c.why = "The token is refused"
		}
		t.Run(name, func(t *testing.T) { (&user{world: u.world, T: t}).lets(id, c.user, c.token, c.why) })
	}
	stranger := u.world.user(t)
	u.lets(id, "jane", stranger.tokenOf(at, "jane", nil), "another account")
	unknown := *u
	unknown.key = "NOBODY"
	u.lets(id, "jane", unknown.tokenOf(at, "jane", nil), "does not exist")
	u.lets("db-OTHER", "jane", good, "not enabled")
	u.do("ModifyDBInstance?DBInstanceIdentifier=db&EnableIAMDatabaseAuthentication=false&ApplyImmediately=true")
	u.settle()
	u.lets(id, "jane", u.tokenOf(at, "jane", nil), "not enabled")
}

func flipped(b byte) string {
	if b == '0' {
		return "1"
	}
	return "0"
}

func TestTokensByPolicy(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB + "&EnableIAMDatabaseAuthentication=true")(u)
	d, at := u.endpointOf()
	one := u.withPolicy(`{"Effect":"Allow","Action":"rds-db:connect","Resource":"arn:aws:rds-db:us-east-1:ACCOUNT:dbuser:` + d.ResourceID + `/jane"}`)
	u.lets(d.ResourceID, "jane", one.tokenOf(at, "jane", nil), "")
	u.lets(d.ResourceID, "joe", one.tokenOf(at, "joe", nil), "no identity-based policy allows the rds-db:connect action")
	all := u.withPolicy(`[` + allowAll + `,{"Effect":"Deny","Action":"rds-db:connect","Resource":"arn:aws:rds-db:*:*:dbuser:*/joe"}]`)
	u.lets(d.ResourceID, "jane", all.tokenOf(at, "jane", nil), "")
	u.lets(d.ResourceID, "joe", all.tokenOf(at, "joe", nil), "explicit deny")
	rds := u.withPolicy(`{"Effect":"Allow","Action":"rds:*","Resource":"*"}`)
	u.lets(d.ResourceID, "jane", rds.tokenOf(at, "jane", nil), "no identity-based policy")
}

// All endpoints of a cluster take tokens for the cluster.
func TestTokensOfAClusterAreForAnyEndpoint(t *testing.T) {
	u := newWorld(t).user(t)
	having(newCluster+"&EnableIAMDatabaseAuthentication=true", newMember, second)(u)
	u.do("CreateDBClusterEndpoint?DBClusterIdentifier=aura&DBClusterEndpointIdentifier=some&EndpointType=ANY")
	l := u.server.rds.Databases.Of(u.account)
	c := l.Clusters[0].Value
	addresses := []string{c.Address, c.ReaderAddress}
	for _, i := range l.InstancesOf(c.ResourceID) {
		addresses = append(addresses, i.Address)
	}
	for _, e := range state.LoadAll[spec.Endpoint](u.server.Cache, state.EndpointRoot) {
		addresses = append(addresses, e.Value.Address)
	}
	if len(addresses) != 5 {
		t.Errorf("endpoints: %v", addresses)
	}
	for _, address := range addresses {
		u.lets(c.ResourceID, "jane", u.tokenOf(address+":5432", "jane", nil), "")
	}
	only := u.withPolicy(`{"Effect":"Allow","Action":"rds-db:connect","Resource":"arn:aws:rds-db:*:*:dbuser:` + c.ResourceID + `/*"}`)
	u.lets(c.ResourceID, "jane", only.tokenOf(c.ReaderAddress+":5432", "jane", nil), "")
}

func TestTokensAreRecorded(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB + "&EnableIAMDatabaseAuthentication=true")(u)
	d, at := u.endpointOf()
	u.lets(d.ResourceID, "jane", u.tokenOf(at, "jane", nil), "")
	u.lets(d.ResourceID, "jane", u.tokenOf(at, "joe", nil), "another user")
	var codes []string
	err := audit.Read(u.server.Home.AuditDir(), time.Time{}, func(r audit.Record) error {
		if r.Action == "connect" && r.Service == "rds-db" {
			codes = append(codes, r.Code)
			if !strings.HasSuffix(r.Parameters["Resource"], ":dbuser:"+d.ResourceID+"/jane") {
				t.Errorf("recorded %+v", r)
			}
		}
		return nil
	})
	if err != nil || strings.Join(codes, ",") != ",AccessDenied" {
		t.Errorf("recorded %q: %v", codes, err)
	}
}

// A control plane that cannot read its state does not decide.
func TestTokensWithoutState(t *testing.T) {
	u := newWorld(t).user(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.server.Login(ctx, "db-1", "jane", "x"); err == nil || strings.Contains(err.Error(), "not enabled") {
		t.Errorf("decided: %v", err)
	}
}

package dial

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"time"

	"howdah/internal/engine/patroni/rest"
	"howdah/internal/host/agent"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

const (
	// Patience is how long Patroni may take to show its certificate, or a socket to be answered:
	// who is frozen must not make another one look as if it did not answer.
	Patience = 200 * time.Millisecond
	// wakeTimeout bounds one attempt to wake Patroni.
	wakeTimeout = 3 * time.Second
)

// Patroni asks the Patroni of a member of this host.
func Patroni(a *agent.Agent, as member.Assignment) (rest.Member, error) {
	tls, err := a.Identity.ClientTLS()
	if err != nil {
		return rest.Member{}, err
	}
	return rest.Member{
		HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: tls}},
		URL:  restURL(as),
	}, nil
}

// restURL is where a member's Patroni answers.
func restURL(a member.Assignment) string {
	return "https://" + a.Address + ":" + strconv.Itoa(a.RESTPort)
}

// Wake has a member's Patroni look at once at what has just changed.
func Wake(ctx context.Context, a *agent.Agent, m member.Assignment) {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	client, err := Patroni(a, m)
	if err == nil {
		defer client.HTTP.CloseIdleConnections()
		err = client.Wake(ctx)
	}
	if err != nil {
		a.Log.Info("wake Patroni", "member", m.ID, "error", err) // it looks each second by itself
	}
}

// ShowsOther reports whether a member's Patroni shows another certificate than it has on disk.
// Patroni looks for a new one only when nothing else changed in its configuration
// (its __main__.py, reload_config).
func ShowsOther(ctx context.Context, a *agent.Agent, target member.Assignment) bool {
	pair, err := a.MemberPair(target.ID, patroni.CertDir)
	if err != nil {
		return false
	}
	leaf, err := pair.Leaf()
	if err != nil {
		return false
	}
	config, err := a.Identity.ClientTLS()
	if err != nil {
		return false
	}
	config.ClientSessionCache = nil
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", net.JoinHostPort(target.Address, strconv.Itoa(target.RESTPort)))
	if err != nil {
		return false
	}
	defer conn.Close()
	t, ok := conn.(*tls.Conn)
	return ok && !t.ConnectionState().PeerCertificates[0].Equal(leaf)
}

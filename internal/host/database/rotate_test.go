package database

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/host/database/dial"
	"howdah/internal/identity/certs"
	"howdah/internal/model/kind"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
)

// rotates has a real database show the certificate of another authority and one of its
// own again, while a session that is open goes on, and without a restart. Patroni, its
// etcd and the probe use the certificate too.
func (w *world) rotates(host *Host, a *member.Assignment) {
	w.Helper()
	w.shows(a.ID, "")
	config, err := dial.Monitor(host.Agent, *a)
	w.Must(err)
	session, err := pgx.ConnectConfig(w.Context(), config)
	w.Must(err)
	defer session.Close(w.Context())
	pid := w.Lines(a.ID, "data/postmaster.pid")[0]
	for _, to := range []struct{ authority, key string }{{"howdah-ca-g2", kind.RSA2048}, {"", kind.EC256}} {
		a.Generation++
		a.Authority, a.ServerKey = to.authority, to.key
		w.Assign(*a)
		report := w.shows(a.ID, to.authority)
		pair, err := certs.Load(host.Path("members", a.ID, patroni.CertDir))
		w.Must(err)
		leaf, err := pair.Leaf()
		w.Must(err)
		if !pair.By(to.authority) || !report.CertUntil.Equal(leaf.NotAfter) {
			w.Errorf("the certificate is until %s, the report says %s", leaf.NotAfter, report.CertUntil)
		}
		var one int
		if err := session.QueryRow(w.Context(), "SELECT 1").Scan(&one); err != nil {
			w.Errorf("a session of before: %v", err)
		}
		w.restShows(host, *a, to.authority)
	}
	if now := w.Lines(a.ID, "data/postmaster.pid")[0]; now != pid {
		w.Error("a new certificate cost a PostgreSQL")
	}
}

// shows waits until a login was shown a certificate of an authority.
func (w *world) shows(id, authority string) member.Report {
	w.Helper()
	return w.Awaits(id, time.Minute, func(r member.Report) error {
		if !r.Ready || r.CertUntil.IsZero() || r.Authority != authority {
			return fmt.Errorf("it shows a certificate of %q until %s, ready: %t", r.Authority, r.CertUntil, r.Ready)
		}
		return nil
	})
}

// restShows waits until Patroni shows it too.
func (w *world) restShows(host *Host, a member.Assignment, authority string) {
	w.Helper()
	config, err := host.Identity.ClientTLS()
	w.Must(err)
	config.ClientSessionCache = nil
	testkit.Eventually(w.T, time.Minute, func() error {
		conn, err := tls.Dial("tcp", fmt.Sprintf("%s:%d", a.Address, a.RESTPort), config)
		if err != nil {
			return err
		}
		defer conn.Close()
		if got := certs.AuthorityOf(conn.ConnectionState().PeerCertificates[0]); got != authority {
			return fmt.Errorf("Patroni shows a certificate of %q", got)
		}
		return nil
	})
}

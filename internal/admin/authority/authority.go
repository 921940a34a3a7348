// Package authority has the admin API's verbs on the authorities that sign the certificates of
// databases.
package authority

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/identity/certs"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// timeout bounds the making of an authority. An RSA key takes seconds.
const timeout = 2 * time.Minute

// Authorities gives access to all authorities: certificate.Authorities.
type Authorities interface {
	// Names returns the names of all authorities, in order.
	Names() []string
	// Certs returns the certificates of all authorities, by name.
	Certs() (map[string]*x509.Certificate, error)
	// Make makes an authority of this name if there is none yet.
	Make(ctx context.Context, name string) error
}

// Config is what the verbs need. All fields are required.
type Config struct {
	State       *state.Client
	Authorities Authorities
	Log         *slog.Logger
}

// service has the handlers.
type service struct {
	*state.Client
	authorities Authorities
	log         *slog.Logger
}

// Verbs returns the verbs on authorities.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg.State, cfg.Authorities, cfg.Log}
	return verb.Table{
		admin.VerbAuthorityCreate: verb.On(verb.OfHome, s.create).Within(timeout),
		admin.VerbAuthorityList:   verb.On(verb.OfHome, s.list),
	}
}

// list returns all authorities that sign the certificates of databases.
func (s *service) list(ctx context.Context, _ front.Call, _ admin.Nothing) (admin.AuthorityListAnswer, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.AuthorityListAnswer{}, err
	}
	used := map[string]int{}
	for _, r := range state.LoadAll[spec.Instance](s.Cache, state.InstanceRoot) {
		if !r.Value.Auto {
			used[r.Value.CACertificate]++
		}
	}
	for _, r := range state.LoadAll[spec.Cluster](s.Cache, state.ClusterRoot) {
		if r.Value.MultiAZ() {
			used[r.Value.CACertificate]++
		}
	}
	all, err := s.authorities.Certs()
	if err != nil {
		return admin.AuthorityListAnswer{}, err
	}
	out := admin.AuthorityListAnswer{Authorities: []admin.Authority{}}
	names := s.authorities.Names()
	for _, name := range names {
		newer, _ := spec.NewerAuthority(name, names)
		a := admin.Authority{Name: name, Newer: newer, Databases: used[name]}
		if cert := all[name]; cert != nil {
			a.ValidFrom, a.ValidTill, a.Thumbprint = cert.NotBefore.UTC(), cert.NotAfter.UTC(), certs.Fingerprint(cert)
		}
		out.Authorities = append(out.Authorities, a)
	}
	return out, nil
}

// create makes the next authority of a line. From then on it is in the
// bundle of clients, and databases of the line have a rotation pending.
func (s *service) create(ctx context.Context, c front.Call, in admin.AuthorityRequest) (admin.Authority, error) {
	name := in.Line
	if name == "" {
		name = spec.HomeAuthority
	}
	at := slices.IndexFunc(spec.AuthorityLines, func(l spec.AuthorityLine) bool { return l.Name == name })
	if at < 0 {
		var lines []string
		for _, l := range spec.AuthorityLines {
			lines = append(lines, l.Name)
		}
		return admin.Authority{}, admin.NewError(admin.CodeInvalidRequest, "There is no line of authorities "+name+".", "choose one of "+strings.Join(lines, ", "))
	}
	if err := s.Fresh(ctx); err != nil {
		return admin.Authority{}, err
	}
	line := spec.AuthorityLines[at]
	made := line.Authority(1)
	if names := s.authorities.Names(); slices.Contains(names, made) {
		newest, ok := spec.NewerAuthority(made, names)
		if !ok {
			newest = made
		}
		_, generation, _ := spec.ParseAuthority(newest)
		made = line.Authority(generation + 1)
	}
	if err := s.authorities.Make(ctx, made); errors.Is(err, certs.ErrNoSuccessor) {
		return admin.Authority{}, admin.NewError(admin.CodeInvalidRequest, "No authority can be made: "+err.Error()+".", "")
	} else if err != nil {
		return admin.Authority{}, err
	}
	s.log.Info("authority asked for", "name", made, "by", c.Who.Key)
	all, err := s.list(ctx, c, admin.Nothing{})
	if err != nil {
		return admin.Authority{}, err
	}
	n := slices.IndexFunc(all.Authorities, func(a admin.Authority) bool { return a.Name == made })
	return all.Authorities[n], nil
}

package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/identity/certs"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// adminAuthorityList answers all authorities that sign the certificates of databases.
func (s *Server) adminAuthorityList(ctx context.Context, _ front.Call, _ admin.Nothing) (admin.AuthorityListAnswer, error) {
	if err := s.client.Fresh(ctx); err != nil {
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

// adminAuthorityCreate makes the next authority of a line. From then on it is in the
// bundle of clients, and databases of the line have a rotation pending.
func (s *Server) adminAuthorityCreate(ctx context.Context, c front.Call, in admin.AuthorityRequest) (admin.Authority, error) {
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
	if err := s.client.Fresh(ctx); err != nil {
		return admin.Authority{}, err
	}
	line := spec.AuthorityLines[at]
	made := line.Authority(1)
	if s.authorities.Check(made) == nil {
		newest, ok := spec.NewerAuthority(made, s.authorities.Names())
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
	s.Log.Info("authority asked for", "name", made, "by", c.Who.Key)
	list, err := s.adminAuthorityList(ctx, c, admin.Nothing{})
	if err != nil {
		return admin.Authority{}, err
	}
	n := slices.IndexFunc(list.Authorities, func(a admin.Authority) bool { return a.Name == made })
	return list.Authorities[n], nil
}

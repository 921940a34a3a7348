package server

import (
	"context"
	"crypto/sha1" // a thumbprint, as RDS shows it: nothing relies on it
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/authority"
	"howdah/internal/identity/certs"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// certificateActions are those on certificates.
func (s *Server) certificateActions() map[string]front.Action {
	return map[string]front.Action{
		"DescribeCertificates": front.On(s.describeCertificates),
		"ModifyCertificates":   front.On(s.modifyCertificates),
	}
}

// authorityNames are those of all authorities, in order.
func (s *Server) authorityNames() []string {
	names := append(s.Cache.Names(state.AuthorityRoot), spec.HomeAuthority)
	slices.Sort(names)
	return names
}

// authorityCerts are the certificates of all authorities, as clients have them in
// their bundles, by name.
func (s *Server) authorityCerts() (map[string]*x509.Certificate, error) {
	own, err := s.Home.CA()
	if err != nil {
		return nil, err
	}
	all := map[string]*x509.Certificate{spec.HomeAuthority: own.Cert}
	for _, r := range state.LoadAll[authority.Record](s.Cache, state.AuthorityRoot) {
		cert, err := certs.Pair{CertPEM: r.Value.Cert}.Leaf()
		if err != nil {
			return nil, fmt.Errorf("authority %s: %w", r.Value.ID, err)
		}
		all[r.Value.ID] = cert
	}
	return all, nil
}

// Bundle is what clients of the API and of databases are to trust, in PEM: the home's
// authority and all others, also those that no server has a certificate of yet.
func (s *Server) Bundle() []byte {
	own, err := s.Home.CA()
	if err != nil {
		s.Log.Error("read authority", "error", err)
		return nil
	}
	var all []authority.Record
	for _, r := range state.LoadAll[authority.Record](s.Cache, state.AuthorityRoot) {
		all = append(all, r.Value)
	}
	return authority.Bundle(own.CertPEM, all)
}

// checkCertificate refuses an authority that does not exist.
func (s *Server) checkCertificate(name string) error {
	if name == spec.HomeAuthority {
		return nil
	}
	if _, _, ok := s.Cache.Raw(state.Authority(name)); !ok || name == "" {
		return wire.NewError(rds.ErrCertificateNotFound, "Certificate not found: %s. There are: %s, as CACertificateIdentifier.", name, strings.Join(s.authorityNames(), ", "))
	}
	return nil
}

// defaultAuthority is what new databases get: the account's choice, or the newest of
// the home's line.
func (s *Server) defaultAuthority(scope spec.Scope) string {
	if chosen, err := state.Load[authority.Default](s.Cache, state.DefaultAuthority(scope.Account, scope.Region)); err == nil {
		return chosen.Value.ID
	}
	if newest, ok := spec.NewerAuthority(spec.HomeAuthority, s.authorityNames()); ok {
		return newest
	}
	return spec.HomeAuthority
}

// describeCertificates shows the authorities that sign the certificates of databases.
func (s *Server) describeCertificates(ctx context.Context, c front.Call, in *rds.DescribeCertificatesMessage) (*rds.CertificateMessage, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	names := s.authorityNames()
	if in.CertificateIdentifier != nil {
		if err := s.checkCertificate(*in.CertificateIdentifier); err != nil {
			return nil, err
		}
		names = []string{*in.CertificateIdentifier}
	}
	all, err := s.authorityCerts()
	if err != nil {
		return nil, err
	}
	chosen, marker, err := page.Of(names, func(name string) string { return name }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.CertificateMessage{Certificates: []rds.Certificate{}, Marker: marker, DefaultCertificateForNewLaunches: wire.Some(s.defaultAuthority(c.Scope))}
	for _, name := range chosen {
		out.Certificates = append(out.Certificates, s.certificateOut(c.Scope, name, all[name]))
	}
	return out, nil
}

// modifyCertificates chooses the authority for the account's new databases, or leaves
// the choice to the home again.
func (s *Server) modifyCertificates(ctx context.Context, c front.Call, in *rds.ModifyCertificatesMessage) (*rds.ModifyCertificatesResult, error) {
	remove := wire.Or(in.RemoveCustomerOverride, false)
	change := state.Delete(state.DefaultAuthority(c.Account, c.Region))
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	switch {
	case remove && in.CertificateIdentifier != nil:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "CertificateIdentifier and RemoveCustomerOverride exclude each other.")
	case !remove && in.CertificateIdentifier == nil:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "One of CertificateIdentifier and RemoveCustomerOverride must be given.")
	case !remove:
		if err := s.checkCertificate(*in.CertificateIdentifier); err != nil {
			return nil, err
		}
		change = state.Put(state.DefaultAuthority(c.Account, c.Region), authority.Default{ID: *in.CertificateIdentifier})
	}
	if err := s.client.Commit(ctx, change); err != nil {
		return nil, err
	}
	all, err := s.authorityCerts()
	if err != nil {
		return nil, err
	}
	name := s.defaultAuthority(c.Scope)
	return &rds.ModifyCertificatesResult{Certificate: wire.Some(s.certificateOut(c.Scope, name, all[name]))}, nil
}

func (s *Server) certificateOut(scope spec.Scope, name string, cert *x509.Certificate) rds.Certificate {
	out := rds.Certificate{
		CertificateIdentifier: wire.Some(name), CertificateType: wire.Some("CA"),
		CertificateArn: wire.Some(strings.Join([]string{"arn:aws:rds", scope.Region, "", "cert", name}, ":")), CustomerOverride: wire.Some(false),
	}
	if cert != nil {
		out.Thumbprint = wire.Some(fmt.Sprintf("%x", sha1.Sum(cert.Raw)))
		out.ValidFrom, out.ValidTill = wire.Some(cert.NotBefore.UTC()), wire.Some(cert.NotAfter.UTC())
	}
	chosen, err := state.Load[authority.Default](s.Cache, state.DefaultAuthority(scope.Account, scope.Region))
	if err == nil && chosen.Value.ID == name {
		out.CustomerOverride, out.CustomerOverrideValidTill = wire.Some(true), out.ValidTill
	}
	return out
}

// makeAuthority makes an authority of this name if there is none yet.
func (s *Server) makeAuthority(ctx context.Context, name string) error {
	if s.checkCertificate(name) == nil {
		return nil
	}
	own, err := s.Home.CA()
	if err != nil {
		return err
	}
	seal, err := s.Home.SealKey()
	if err != nil {
		return err
	}
	record, err := authority.New(own, seal, name, s.now().UTC())
	if err != nil {
		return err
	}
	err = s.client.Commit(ctx, state.Swap(state.Authority(name), 0, record))
	if errors.Is(err, state.ErrConflict) {
		return nil // someone else made it
	}
	if err == nil {
		s.Log.Info("authority made", "name", name)
	}
	return err
}

// Package certificate is about the authorities that sign the certificates of databases: which
// there are, which one an account's new databases get, and what a database shows of its own.
// The operator or the control plane has authorities made; nothing here does so by itself.
package certificate

import (
	"context"
	"crypto/sha1" // a thumbprint, as RDS shows it: nothing relies on it
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/authority"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Authorities are those of a home. All fields are required.
type Authorities struct {
	State *state.Client
	Home  *home.Home
	Now   func() time.Time
	Log   *slog.Logger
}

// Actions are those on certificates.
func (a *Authorities) Actions() map[string]front.Action {
	return map[string]front.Action{
		"DescribeCertificates": front.On(a.describeCertificates),
		"ModifyCertificates":   front.On(a.modifyCertificates),
	}
}

// Names are those of all authorities, in order.
func (a *Authorities) Names() []string {
	names := append(a.State.Cache.Names(state.AuthorityRoot), spec.HomeAuthority)
	slices.Sort(names)
	return names
}

// Certs are the certificates of all authorities, as clients have them in their bundles, by
// name.
func (a *Authorities) Certs() (map[string]*x509.Certificate, error) {
	own, err := a.Home.CA()
	if err != nil {
		return nil, err
	}
	all := map[string]*x509.Certificate{spec.HomeAuthority: own.Cert}
	for _, r := range state.LoadAll[authority.Record](a.State.Cache, state.AuthorityRoot) {
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
func (a *Authorities) Bundle() []byte {
	own, err := a.Home.CA()
	if err != nil {
		a.Log.Error("read authority", "error", err)
		return nil
	}
	var all []authority.Record
	for _, r := range state.LoadAll[authority.Record](a.State.Cache, state.AuthorityRoot) {
		all = append(all, r.Value)
	}
	return authority.Bundle(own.CertPEM, all)
}

// Check refuses an authority that does not exist.
func (a *Authorities) Check(name string) error {
	if name == spec.HomeAuthority {
		return nil
	}
	if _, _, ok := a.State.Cache.Raw(state.Authority(name)); !ok || name == "" {
		return wire.NewError(rds.ErrCertificateNotFound, "Certificate not found: %s. There are: %s, as CACertificateIdentifier.", name, strings.Join(a.Names(), ", "))
	}
	return nil
}

// Default is what new databases get: the account's choice, or the newest of the home's line.
func (a *Authorities) Default(scope spec.Scope) string {
	if chosen, err := state.Load[authority.Default](a.State.Cache, state.DefaultAuthority(scope.Account, scope.Region)); err == nil {
		return chosen.Value.ID
	}
	if newest, ok := spec.NewerAuthority(spec.HomeAuthority, a.Names()); ok {
		return newest
	}
	return spec.HomeAuthority
}

// describeCertificates shows the authorities that sign the certificates of databases.
func (a *Authorities) describeCertificates(ctx context.Context, c front.Call, in *rds.DescribeCertificatesMessage) (*rds.CertificateMessage, error) {
	if err := a.State.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	names := a.Names()
	if in.CertificateIdentifier != nil {
		if err := a.Check(*in.CertificateIdentifier); err != nil {
			return nil, err
		}
		names = []string{*in.CertificateIdentifier}
	}
	all, err := a.Certs()
	if err != nil {
		return nil, err
	}
	chosen, marker, err := page.Of(names, func(name string) string { return name }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.CertificateMessage{Certificates: []rds.Certificate{}, Marker: marker, DefaultCertificateForNewLaunches: wire.Some(a.Default(c.Scope))}
	for _, name := range chosen {
		out.Certificates = append(out.Certificates, a.out(c.Scope, name, all[name]))
	}
	return out, nil
}

// modifyCertificates chooses the authority for the account's new databases, or leaves the
// choice to the home again.
func (a *Authorities) modifyCertificates(ctx context.Context, c front.Call, in *rds.ModifyCertificatesMessage) (*rds.ModifyCertificatesResult, error) {
	remove := wire.Or(in.RemoveCustomerOverride, false)
	change := state.Delete(state.DefaultAuthority(c.Account, c.Region))
	if err := a.State.Fresh(ctx); err != nil {
		return nil, err
	}
	switch {
	case remove && in.CertificateIdentifier != nil:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "CertificateIdentifier and RemoveCustomerOverride exclude each other.")
	case !remove && in.CertificateIdentifier == nil:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "One of CertificateIdentifier and RemoveCustomerOverride must be given.")
	case !remove:
		if err := a.Check(*in.CertificateIdentifier); err != nil {
			return nil, err
		}
		change = state.Put(state.DefaultAuthority(c.Account, c.Region), authority.Default{ID: *in.CertificateIdentifier})
	}
	if err := a.State.Commit(ctx, change); err != nil {
		return nil, err
	}
	all, err := a.Certs()
	if err != nil {
		return nil, err
	}
	name := a.Default(c.Scope)
	return &rds.ModifyCertificatesResult{Certificate: wire.Some(a.out(c.Scope, name, all[name]))}, nil
}

func (a *Authorities) out(scope spec.Scope, name string, cert *x509.Certificate) rds.Certificate {
	out := rds.Certificate{
		CertificateIdentifier: wire.Some(name), CertificateType: wire.Some("CA"),
		CertificateArn: wire.Some(strings.Join([]string{"arn:aws:rds", scope.Region, "", "cert", name}, ":")), CustomerOverride: wire.Some(false),
	}
	if cert != nil {
		out.Thumbprint = wire.Some(fmt.Sprintf("%x", sha1.Sum(cert.Raw)))
		out.ValidFrom, out.ValidTill = wire.Some(cert.NotBefore.UTC()), wire.Some(cert.NotAfter.UTC())
	}
	chosen, err := state.Load[authority.Default](a.State.Cache, state.DefaultAuthority(scope.Account, scope.Region))
	if err == nil && chosen.Value.ID == name {
		out.CustomerOverride, out.CustomerOverrideValidTill = wire.Some(true), out.ValidTill
	}
	return out
}

// Make makes an authority of this name if there is none yet.
func (a *Authorities) Make(ctx context.Context, name string) error {
	if a.Check(name) == nil {
		return nil
	}
	own, err := a.Home.CA()
	if err != nil {
		return err
	}
	seal, err := a.Home.SealKey()
	if err != nil {
		return err
	}
	record, err := authority.New(own, seal, name, a.Now().UTC())
	if err != nil {
		return err
	}
	err = a.State.Commit(ctx, state.Swap(state.Authority(name), 0, record))
	if errors.Is(err, state.ErrConflict) {
		return nil // someone else made it
	}
	if err == nil {
		a.Log.Info("authority made", "name", name)
	}
	return err
}

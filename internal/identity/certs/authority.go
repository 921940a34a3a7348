package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"howdah/internal/model/kind"
)

// authorityLifetime is how long authorities of databases live, as RDS's rsa2048 does.
const authorityLifetime = 40 * 365 * 24 * time.Hour

// ErrNoSuccessor says that an authority may not sign others. A Howdah that knew of no others made
// it.
var ErrNoSuccessor = errors.New("the authority of this home may not sign others: it was made by an older version of Howdah")

// NewAuthority makes an authority that signs the certificates of databases' servers. Its key is of
// a kind that package spec names.
//
// It has two certificates of the same name and key. One is signed by itself: it is for the bundles
// of clients. The other is signed by ca, which is the home's own. Servers send it along, so that
// whoever trusts the home's authority trusts them too. So a client's bundle may be of any age.
// Nothing within the home has to learn of a new authority before servers have its certificates.
func (ca *CA) NewAuthority(id, key string) (authority *CA, cross []byte, err error) {
	if !ca.MaySignOthers() {
		return nil, nil, ErrNoSuccessor
	}
	private, err := generate(key)
	if err != nil {
		return nil, nil, err
	}
	subject := ca.Cert.Subject
	name := pkix.Name{CommonName: subject.CommonName + " " + id, Organization: subject.Organization, OrganizationalUnit: []string{id}}
	own := authorityTemplate(name, authorityLifetime)
	own.MaxPathLenZero = true
	der, err := x509.CreateCertificate(rand.Reader, own, own, private.Public(), private)
	if err != nil {
		return nil, nil, fmt.Errorf("sign authority %s: %w", id, err)
	}
	crossed := authorityTemplate(name, authorityLifetime)
	crossed.MaxPathLenZero, crossed.NotAfter = true, ca.Cert.NotAfter
	crossDER, err := x509.CreateCertificate(rand.Reader, crossed, ca.Cert, private.Public(), ca.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign authority %s: %w", id, err)
	}
	cross = pemBlock("CERTIFICATE", crossDER)
	authority, err = withCross(der, cross, private)
	return authority, cross, err
}

// MaySignOthers reports whether NewAuthority works.
func (ca *CA) MaySignOthers() bool { return ca.Cert.MaxPathLen > 0 }

// ParseAuthority reads what NewAuthority made.
func ParseAuthority(certPEM, crossPEM, keyPEM []byte) (*CA, error) {
	ca, err := ParseCA(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	return withCross(ca.Cert.Raw, crossPEM, ca.key)
}

func withCross(der, crossPEM []byte, key crypto.Signer) (*CA, error) {
	ca, err := newCA(der, key)
	if err != nil {
		return nil, err
	}
	cross, err := Pair{CertPEM: crossPEM}.Leaf()
	if err != nil {
		return nil, fmt.Errorf("cross certificate: %w", err)
	}
	ca.chain = crossPEM
	if cross.NotAfter.Before(ca.until) {
		ca.until = cross.NotAfter
	}
	return ca, nil
}

// AuthorityOf returns the name of the authority that signed a certificate, or "" if it is the
// home's own.
func AuthorityOf(cert *x509.Certificate) string {
	if unit := cert.Issuer.OrganizationalUnit; len(unit) > 0 {
		return unit[0]
	}
	return ""
}

// By reports whether the authority of this name signed the certificate. "" names the home's own.
func (p Pair) By(authority string) bool {
	leaf, err := p.Leaf()
	return err == nil && AuthorityOf(leaf) == authority
}

var errKind = errors.New("unknown kind of key")

func generate(wanted string) (crypto.Signer, error) {
	var key crypto.Signer
	var err error
	switch wanted {
	case kind.EC256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case kind.EC384:
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case kind.RSA2048:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case kind.RSA4096:
		key, err = rsa.GenerateKey(rand.Reader, 4096)
	default:
		err = fmt.Errorf("%s: %w", wanted, errKind)
	}
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

func parseKey(block *pem.Block) (crypto.Signer, error) {
	if block.Type == "EC PRIVATE KEY" {
		return x509.ParseECPrivateKey(block.Bytes)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errKind
	}
	return signer, nil
}

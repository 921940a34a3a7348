// Package certs is the built-in certificate authority of a home, and the TLS configurations made
// from it. Everything that talks to etcd, to a Patroni REST API or to PostgreSQL on behalf of the
// platform shows a certificate of this authority. There are no internal passwords.
package certs

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"howdah/internal/model/kind"
)

const (
	caLifetime   = 20 * 365 * 24 * time.Hour
	leafLifetime = 365 * 24 * time.Hour
	// backdate lets a host whose clock is behind accept a new certificate.
	backdate = time.Hour
)

// ErrNotOurs says that a certificate was not signed by this authority.
var ErrNotOurs = errors.New("not signed by this home's authority")

// CA signs certificates. The zero value is not usable: see New and ParseCA.
type CA struct {
	Cert    *x509.Certificate
	CertPEM []byte
	// Lifetime is how long the certificates live that it signs. Zero is a year. No certificate
	// lives longer than its authority.
	Lifetime time.Duration
	chain    []byte    // what follows a certificate of this authority, in PEM
	until    time.Time // its end, and that of its chain
	key      crypto.Signer
}

// New makes an authority whose subject has this name.
func New(name string) (*CA, error) {
	key, err := generate(kind.EC256)
	if err != nil {
		return nil, err
	}
	template := authorityTemplate(pkix.Name{CommonName: name, Organization: []string{"Howdah"}}, caLifetime)
	template.MaxPathLen = 1 // the authorities of databases: see NewAuthority
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority certificate: %w", err)
	}
	return newCA(der, key)
}

func authorityTemplate(subject pkix.Name, life time.Duration) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               subject,
		NotBefore:             time.Now().Add(-backdate),
		NotAfter:              time.Now().Add(life),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
}

// ParseCA reads an authority from the PEM texts of CertPEM and KeyPEM.
func ParseCA(certPEM, keyPEM []byte) (*CA, error) {
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("parse authority: no PEM block")
	}
	key, err := parseKey(keyBlock)
	if err != nil {
		return nil, fmt.Errorf("parse authority key: %w", err)
	}
	return newCA(certBlock.Bytes, key)
}

func newCA(der []byte, key crypto.Signer) (*CA, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse authority certificate: %w", err)
	}
	text := pemBlock("CERTIFICATE", der)
	// The chain has the authority in it, so that an agent that joins can check its fingerprint in
	// the handshake.
	return &CA{Cert: cert, CertPEM: text, chain: text, until: cert.NotAfter, key: key}, nil
}

// KeyPEM returns the authority's private key. Keep it only in files of mode 0600.
func (ca *CA) KeyPEM() ([]byte, error) {
	return marshalKey(ca.key)
}

// Fingerprint identifies an authority in a join token: the SHA-256 of its
// certificate, in hex.
func Fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// Subject is what a certificate says of its holder.
type Subject struct {
	CommonName string
	IPs        []net.IP
	DNSNames   []string
	// For says what the certificate is good for. It is refused for anything else.
	For Purpose
}

// Purpose says whether a certificate is for servers, for clients, or for both (the zero value).
type Purpose int

// The purposes. A client that shows a certificate for servers only is refused. So is a server that
// shows one for clients only.
const (
	Both Purpose = iota
	ServerOnly
	ClientOnly
)

func (p Purpose) usages() []x509.ExtKeyUsage {
	switch p {
	case ServerOnly:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	case ClientOnly:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	default:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
}

// Sign returns a certificate for a signing request, in PEM. The caller decides about the subject,
// never the request. The request brings only the public key, and the proof that its sender has the
// private one.
func (ca *CA) Sign(csrPEM []byte, subject Subject) ([]byte, error) {
	block, _ := pem.Decode(csrPEM)
	if block == nil {
		return nil, errors.New("parse signing request: no PEM block")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse signing request: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("check signing request: %w", err)
	}
	return ca.sign(request.PublicKey, subject)
}

// Issue makes a key and a certificate for it.
func (ca *CA) Issue(subject Subject) (Pair, error) {
	key, err := generate(kind.EC256)
	if err != nil {
		return Pair{}, err
	}
	cert, err := ca.sign(key.Public(), subject)
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := marshalKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{CertPEM: cert, KeyPEM: keyPEM, CAPEM: ca.CertPEM}, nil
}

func (ca *CA) sign(public any, subject Subject) ([]byte, error) {
	life := min(cmp.Or(ca.Lifetime, leafLifetime), time.Until(ca.until))
	usage := x509.KeyUsageDigitalSignature
	if _, ok := public.(*rsa.PublicKey); ok {
		usage |= x509.KeyUsageKeyEncipherment // TLS 1.2 without Diffie-Hellman
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: subject.CommonName, Organization: []string{"Howdah"}},
		// A certificate with a short life must not be old from the start.
		NotBefore:             time.Now().Add(-min(backdate, life/10)),
		NotAfter:              time.Now().Add(life),
		KeyUsage:              usage,
		ExtKeyUsage:           subject.For.usages(),
		BasicConstraintsValid: true,
		IPAddresses:           subject.IPs,
		DNSNames:              subject.DNSNames,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Cert, public, ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate for %s: %w", subject.CommonName, err)
	}
	return append(pemBlock("CERTIFICATE", der), ca.chain...), nil
}

// NewRequest makes a key of a kind, and a signing request for it. It returns both in PEM.
func NewRequest(key string) (csrPEM, keyPEM []byte, err error) {
	private, err := generate(key)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	if err != nil {
		return nil, nil, fmt.Errorf("make signing request: %w", err)
	}
	keyPEM, err = marshalKey(private)
	return pemBlock("CERTIFICATE REQUEST", der), keyPEM, err
}

func marshalKey(key crypto.Signer) ([]byte, error) {
	if ec, ok := key.(*ecdsa.PrivateKey); ok {
		der, err := x509.MarshalECPrivateKey(ec)
		if err != nil {
			return nil, fmt.Errorf("encode key: %w", err)
		}
		return pemBlock("EC PRIVATE KEY", der), nil
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pemBlock("PRIVATE KEY", der), nil
}

func pemBlock(kind string, der []byte) []byte {
	var out bytes.Buffer
	// Writing to a buffer cannot fail.
	_ = pem.Encode(&out, &pem.Block{Type: kind, Bytes: der})
	return out.Bytes()
}

func serial() *big.Int {
	limit := new(big.Int).Lsh(big.NewInt(1), 127)
	n, err := rand.Int(rand.Reader, limit)
	if err != nil {
		panic("certs: no randomness: " + err.Error())
	}
	return n
}

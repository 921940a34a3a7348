package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"howdah/internal/system/plainfile"
)

// Pair is a certificate with its key and its authority, in PEM.
type Pair struct {
	CertPEM, KeyPEM, CAPEM []byte
}

// Names of the files that Write makes in a directory.
const (
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
	CAFile   = "ca.crt"
)

// Write puts the pair into dir as tls.crt, tls.key and ca.crt. A reader never sees half a file: all
// files are first written beside their places and then renamed, key and certificate directly after
// each other. The key has mode 0600.
func (p Pair) Write(dir string) error {
	files := []struct {
		name string
		data []byte
		mode os.FileMode
	}{{CAFile, p.CAPEM, 0o644}, {KeyFile, p.KeyPEM, 0o600}, {CertFile, p.CertPEM, 0o644}}
	var staged []string
	for _, f := range files {
		tmp, err := stage(filepath.Join(dir, f.name), f.data, f.mode)
		if err != nil {
			return err
		}
		defer os.Remove(tmp)
		staged = append(staged, tmp)
	}
	for i, f := range files {
		if err := os.Rename(staged[i], filepath.Join(dir, f.name)); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	return nil
}

// stage writes what path is to hold into a file beside it.
func stage(path string, data []byte, mode os.FileMode) (string, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".")
	if err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	_, writeErr := tmp.Write(data)
	err = errors.Join(writeErr, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err != nil {
		os.Remove(tmp.Name())
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return tmp.Name(), nil
}

// Load reads what Write wrote.
func Load(dir string) (Pair, error) {
	var p Pair
	var err error
	if p.CertPEM, err = plainfile.Read(filepath.Join(dir, CertFile)); err != nil {
		return Pair{}, fmt.Errorf("load certificate: %w", err)
	}
	if p.KeyPEM, err = plainfile.Read(filepath.Join(dir, KeyFile)); err != nil {
		return Pair{}, fmt.Errorf("load key: %w", err)
	}
	if p.CAPEM, err = plainfile.Read(filepath.Join(dir, CAFile)); err != nil {
		return Pair{}, fmt.Errorf("load authority: %w", err)
	}
	return p, nil
}

// Leaf returns the certificate itself.
func (p Pair) Leaf() (*x509.Certificate, error) {
	block, _ := pem.Decode(p.CertPEM)
	if block == nil {
		return nil, errors.New("parse certificate: no PEM block")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse certificate: %w", err)
	}
	return cert, nil
}

// Fresh reports whether less than two thirds of the certificate's life are over, and whether it
// names every address of subject.
func (p Pair) Fresh(subject Subject, now time.Time) bool {
	cert, err := p.Leaf()
	if err != nil {
		return false
	}
	if now.After(due(cert)) {
		return false
	}
	for _, ip := range subject.IPs {
		if cert.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	for _, name := range subject.DNSNames {
		if cert.VerifyHostname(name) != nil {
			return false
		}
	}
	return cert.Subject.CommonName == subject.CommonName
}

// NamesOnly reports whether the certificate has no DNS names but these. A name that an endpoint has
// given up may be another one's by now.
func (p Pair) NamesOnly(names []string) bool {
	cert, err := p.Leaf()
	return err == nil && !slices.ContainsFunc(cert.DNSNames, func(name string) bool { return !slices.Contains(names, name) })
}

// Trusts reports whether the pair has an authority with this fingerprint.
func (p Pair) Trusts(fingerprint string) bool {
	for rest := p.CAPEM; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return false
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && Fingerprint(cert) == fingerprint {
			return true
		}
	}
}

// due returns when two thirds of a certificate's life are over.
func due(cert *x509.Certificate) time.Time {
	return cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) * 2 / 3)
}

// Valid reports whether servers still accept the certificate, fresh or not.
func (p Pair) Valid(now time.Time) bool {
	cert, err := p.Leaf()
	return err == nil && now.Before(cert.NotAfter)
}

func (p Pair) pool() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(p.CAPEM) {
		return nil, errors.New("read authority: no certificate in PEM")
	}
	return pool, nil
}

// ClientTLS returns a configuration that shows the pair to servers, and trusts only our authority.
func (p Pair) ClientTLS() (*tls.Config, error) {
	pool, err := p.pool()
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(p.CertPEM, p.KeyPEM)
	if err != nil {
		return nil, fmt.Errorf("load key pair: %w", err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: pool, MinVersion: tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(16),
	}, nil
}

// ServerTLS returns a configuration that serves with the pair. It verifies client certificates of
// our authority if they are given. A handler that needs one asks for it with Caller.
func (p Pair) ServerTLS() (*tls.Config, error) {
	pool, err := p.pool()
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(p.CertPEM, p.KeyPEM)
	if err != nil {
		return nil, fmt.Errorf("load key pair: %w", err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: pool,
		ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12,
	}, nil
}

// Caller returns the common name of a verified client certificate, or "".
func Caller(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 {
		return ""
	}
	return state.VerifiedChains[0][0].Subject.CommonName
}

// PinnedTLS returns a configuration that trusts a server if its chain ends in the authority with
// this fingerprint. A host that has only a join token makes its first call with it.
func PinnedTLS(fingerprint string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // replaced by the stricter check below
		VerifyConnection: func(state tls.ConnectionState) error {
			return verifyPinned(state.PeerCertificates, fingerprint)
		},
	}
}

func verifyPinned(chain []*x509.Certificate, fingerprint string) error {
	if len(chain) == 0 {
		return ErrNotOurs
	}
	authority := chain[len(chain)-1]
	if Fingerprint(authority) != fingerprint {
		return fmt.Errorf("the server's authority is %.16s…, the token names %.16s…: %w",
			Fingerprint(authority), fingerprint, ErrNotOurs)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots})
	return err
}

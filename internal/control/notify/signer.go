package notify

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// CertPath is where the signers' certificates are served, as CertPath + name + ".pem".
const CertPath = "/SimpleNotificationService-"

// keyBits is the size of the key. It is an RSA key, because receivers expect that.
const keyBits = 2048

// signer signs with an RSA key of this control plane. The home's authority signed the key's
// certificate. The certificate is kept for all control planes to serve, because a message may be
// read long after it was signed, when another one leads.
type signer struct {
	dir  string
	ca   *certs.CA
	base string
	// commit writes, and makes later reads see it, because receivers ask for the certificate at
	// once.
	commit func(context.Context, ...state.Op) error

	mu   sync.Mutex
	key  *rsa.PrivateKey // guarded by mu, as are the following
	pair certs.Pair
	url  string
}

var subject = certs.Subject{CommonName: "sns.howdah", DNSNames: []string{"sns.howdah"}}

// sign adds version, signature and the certificate's URL.
func (s *signer) sign(ctx context.Context, e *topic.Envelope, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	kind, digest := crypto.SHA1, sha1.Sum([]byte(e.Signed()))
	sum := digest[:]
	e.SignatureVersion = "1"
	if version == "2" {
		digest := sha256.Sum256([]byte(e.Signed()))
		kind, sum, e.SignatureVersion = crypto.SHA256, digest[:], "2"
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, kind, sum)
	if err != nil {
		return fmt.Errorf("sign message: %w", err)
	}
	e.Signature, e.SigningCertURL = base64.StdEncoding.EncodeToString(signature), s.url
	return nil
}

// ready makes sure that there is a key whose certificate is not too old. The caller holds mu.
func (s *signer) ready(ctx context.Context) error {
	if s.key != nil && s.pair.Fresh(subject, time.Now()) {
		return nil
	}
	pair, err := certs.Load(s.dir)
	if err != nil || !pair.Fresh(subject, time.Now()) || string(pair.CAPEM) != string(s.ca.CertPEM) {
		if pair, err = s.issue(); err != nil {
			return err
		}
	}
	block, _ := pem.Decode(pair.KeyPEM)
	if block == nil {
		return errors.New("read signing key: no PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("read signing key: %w", err)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return errors.New("read signing key: it is no RSA key")
	}
	sum := sha256.Sum256(pair.CertPEM)
	name := hex.EncodeToString(sum[:16])
	if err := s.commit(ctx, state.Put(state.Signer(name), string(pair.CertPEM))); err != nil {
		return fmt.Errorf("publish signing certificate: %w", err)
	}
	s.key, s.pair, s.url = key, pair, s.base+CertPath+name+".pem"
	return nil
}

// issue makes a key and a certificate for it, and keeps both.
func (s *signer) issue() (certs.Pair, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return certs.Pair{}, fmt.Errorf("generate signing key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: subject.CommonName}}, key)
	if err != nil {
		return certs.Pair{}, fmt.Errorf("request signing certificate: %w", err)
	}
	cert, err := s.ca.Sign(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), subject)
	if err != nil {
		return certs.Pair{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return certs.Pair{}, fmt.Errorf("encode signing key: %w", err)
	}
	pair := certs.Pair{CertPEM: cert, KeyPEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), CAPEM: s.ca.CertPEM}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return certs.Pair{}, fmt.Errorf("keep signing key: %w", err)
	}
	return pair, pair.Write(s.dir)
}

// ServeCert serves a signer's certificate, to anyone.
func (n *Notifier) ServeCert(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, CertPath), ".pem")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "use the method GET", http.StatusMethodNotAllowed)
		return
	}
	cert, err := state.Load[string](n.Cache, state.Signer(name))
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/x-pem-file")
	fmt.Fprint(w, cert.Value)
}

package home

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"howdah/internal/identity/certs"
)

const (
	secretFile = "credentials.json"
	joinFile   = "join.json"
)

// Credential is an access key of the API.
type Credential struct {
	AccessKey string `json:"access_key"`
	Secret    string `json:"secret"`
	Account   string `json:"account"` // twelve digits
}

var (
	accessKeyForm = regexp.MustCompile(`^[A-Za-z0-9_-]{3,128}$`)
	accountForm   = regexp.MustCompile(`^[0-9]{12}$`)
)

// ParseCredential reads KEY:SECRET[:ACCOUNT]. A missing account is left empty.
func ParseCredential(text string) (Credential, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return Credential{}, errors.New("a credential is KEY:SECRET or KEY:SECRET:ACCOUNT")
	}
	c := Credential{AccessKey: parts[0], Secret: parts[1]}
	if !accessKeyForm.MatchString(c.AccessKey) {
		return Credential{}, errors.New("an access key has 3 to 128 letters, digits, - or _")
	}
	if len(c.Secret) < 3 {
		return Credential{}, errors.New("a secret has at least 3 characters")
	}
	if len(parts) == 3 {
		if !accountForm.MatchString(parts[2]) {
			return Credential{}, errors.New("an account is twelve digits")
		}
		c.Account = parts[2]
	}
	return c, nil
}

// Join says how other machines become part of this home. It has tokens: each is a secret, with the
// fingerprint of the authority that the joining side must meet.
type Join struct {
	AgentToken  string `json:"agent_token"`
	ServerToken string `json:"server_token"` // gives the authority's key: a new control plane
	// SealKey is for control planes only: see Home.SealKey. It is empty if it was not made yet.
	SealKey []byte `json:"seal_key,omitempty"`
}

// Credentials reads the access keys of the home.
func (h *Home) Credentials() ([]Credential, error) {
	var all []Credential
	if err := readJSON(h.path(secretFile), &all); err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	return all, nil
}

// Join reads the join tokens of the home.
func (h *Home) Join() (Join, error) {
	var j Join
	if err := readJSON(h.path(joinFile), &j); err != nil {
		return Join{}, fmt.Errorf("read join tokens: %w", err)
	}
	return j, nil
}

// CA reads the authority of the home.
func (h *Home) CA() (*certs.CA, error) {
	cert, err := os.ReadFile(h.path("pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	key, err := os.ReadFile(h.path("pki", "ca.key"))
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	return certs.ParseCA(cert, key)
}

func (h *Home) makeSecrets(credential *Credential) error {
	for _, dir := range []string{"pki", "log", "run"} {
		if err := os.MkdirAll(h.path(dir), 0o700); err != nil {
			return fmt.Errorf("make home: %w", err)
		}
	}
	if err := os.Chmod(h.path("pki"), 0o711); err != nil {
		return fmt.Errorf("make home: %w", err)
	}
	ca, err := certs.New("Howdah " + h.ID)
	if err != nil {
		return err
	}
	if err := h.StoreCA(ca); err != nil {
		return err
	}
	if err := h.IssueServerCert(ca, nil); err != nil {
		return err
	}
	fingerprint := certs.Fingerprint(ca.Cert)
	join := Join{AgentToken: NewToken(fingerprint), ServerToken: NewToken(fingerprint)}
	if err := writeJSON(h.path(joinFile), join, 0o600); err != nil {
		return err
	}
	c := Credential{AccessKey: "HOWDAH" + strings.ToUpper(randomHex(7)), Secret: randomHex(20)}
	if credential != nil {
		c = *credential
	}
	if c.Account == "" {
		c.Account = fmt.Sprintf("%012d", 100_000_000_000+randomInt(900_000_000_000))
	}
	h.Account = c.Account
	return writeJSON(h.path(secretFile), []Credential{c}, 0o600)
}

// StoreCA keeps the authority. It is a new home's own, or that of the home that it joins.
func (h *Home) StoreCA(ca *certs.CA) error {
	key, err := ca.KeyPEM()
	if err != nil {
		return err
	}
	if err := os.WriteFile(h.path("pki", "ca.key"), key, 0o600); err != nil {
		return fmt.Errorf("store authority: %w", err)
	}
	if err := os.WriteFile(h.path("pki", "ca.crt"), ca.CertPEM, 0o644); err != nil {
		return fmt.Errorf("store authority: %w", err)
	}
	return nil
}

// ServerName is the common name of control planes' certificates. Nobody who joins can have it.
const ServerName = "howdah-serve"

// ServerSubject returns what the control plane's certificate names.
func (h *Home) ServerSubject(extra []net.IP) certs.Subject {
	ips := append([]net.IP{net.ParseIP(h.Address(0, 1)), net.IPv4(127, 0, 0, 1)}, extra...)
	if host, _, err := net.SplitHostPort(h.Listen); err == nil {
		if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
			ips = append(ips, ip)
		}
	}
	return certs.Subject{CommonName: ServerName, IPs: ips, DNSNames: []string{"localhost"}}
}

// IssueServerCert makes the control plane's certificate. It renews the certificate when it ages or
// when the addresses change.
func (h *Home) IssueServerCert(ca *certs.CA, extra []net.IP) error {
	subject := h.ServerSubject(extra)
	pair, err := ca.Issue(subject)
	if err != nil {
		return err
	}
	return pair.Write(h.CertDir())
}

func (h *Home) addCredential(c Credential) error {
	all, err := h.Credentials()
	if err != nil {
		return err
	}
	for i, known := range all {
		if known.AccessKey != c.AccessKey {
			continue
		}
		if c.Account == "" {
			c.Account = known.Account
		}
		all[i] = c
		return writeJSON(h.path(secretFile), all, 0o600)
	}
	if c.Account == "" {
		c.Account = h.Account
	}
	// The newest key comes first: `howdah env` prints it.
	return writeJSON(h.path(secretFile), append([]Credential{c}, all...), 0o600)
}

// NewToken makes a join token for the authority with this fingerprint.
func NewToken(fingerprint string) string { return "hj1." + randomHex(20) + "." + fingerprint }

// TokenFingerprint returns the fingerprint inside a join token.
func TokenFingerprint(token string) (string, error) {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 || parts[0] != "hj1" || len(parts[2]) != 64 {
		return "", errors.New("not a join token: copy it from `howdah status --join` of the running home")
	}
	return parts[2], nil
}

// Copy makes the home of a further control plane from what the first control plane gave it. Like
// any new home, it exists once its configuration is written.
func Copy(dir string, config Config, join Join, credentials []Credential, ca *certs.CA) (*Home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	config.DataRoot, config.Storage = dataRoot(dir, config.ID), ""
	h := &Home{Dir: dir, Config: config}
	for _, d := range []string{dir, h.path("pki"), h.path("log"), h.path("run")} {
		if err := os.MkdirAll(d, 0o711); err != nil {
			return nil, fmt.Errorf("make home: %w", err)
		}
	}
	err = errors.Join(h.StoreCA(ca), writeJSON(h.path(joinFile), join, 0o600), writeJSON(h.path(secretFile), credentials, 0o600))
	if err != nil {
		return nil, err
	}
	return h, writeJSON(h.path(ConfigFile), h.Config, 0o644)
}

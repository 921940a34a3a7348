// Package home is the directory of one installation of Howdah: its identity, its secrets, its part
// of the loopback network, and the locks that keep two supervisors apart. Several homes run side by
// side on one machine. Nothing of one depends on another.
package home

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"howdah/internal/system/plainfile"
)

var (
	// ErrNone says that a directory holds no home.
	ErrNone = errors.New("no Howdah home here: run `howdah up` first")
	// ErrLocked says that another process already has the role.
	ErrLocked = errors.New("already running")
	// ErrNoState says that a home had a state, and that the state is gone.
	ErrNoState = errors.New("the state of this home is gone: restore it from a backup with `howdah home restore`")
	// ErrRestoring says that a home is half restored.
	ErrRestoring = errors.New("this home is half restored: run `howdah home restore` again, with the same arguments")
)

// DefaultRegion is the region of a new home. It is not us-east-1, because the AWS CLI 1 has an
// endpoint of its own for RDS in that region, and that endpoint wins over AWS_ENDPOINT_URL
// (awscli/customizations/overridesslcommonname.py).
const DefaultRegion = "us-west-2"

// APIPort is where a home serves its API, on the first address of its network.
const APIPort = 7443

// Config is what a home remembers for good. It holds no secrets.
type Config struct {
	ID      string `json:"id"`      // eight hex digits; in names of cgroups, kernel tables and sockets
	Network string `json:"network"` // the home's part of 127.0.0.0/8, as "127.93"
	Region  string `json:"region"`
	Account string `json:"account"` // of the first credential
	Listen  string `json:"listen"`  // host:port of the API
	// Disposable homes may be wiped in one call: they are for test rigs. It is never set later.
	Disposable bool      `json:"disposable"`
	DataRoot   string    `json:"data_root"` // where database files live; usually inside the home
	Created    time.Time `json:"created"`
	// Storage is the file with the file system that is mounted at DataRoot. If it is "", nothing is
	// mounted there.
	Storage string `json:"storage,omitempty"`
	// PublicPool is the range, as CIDR, of the addresses of publicly accessible endpoints. "" says
	// that there is none.
	PublicPool string `json:"public_pool,omitempty"`
	// SMTP is the relay that takes mail to subscribers. nil says that there is no mail.
	SMTP *SMTP `json:"smtp,omitempty"`
}

// SMTP is a relay for mail. Its password stays in a file of the user.
type SMTP struct {
	Relay        string `json:"relay"` // host:port
	From         string `json:"from"`
	User         string `json:"user,omitempty"`
	PasswordFile string `json:"password_file,omitempty"`
}

// Home is an opened home.
type Home struct {
	Dir string
	Config
}

// Options are what a user may choose when a home is made. For a home that exists only Listen,
// PublicPool, Credential and SMTP count.
type Options struct {
	Listen     string
	Region     string
	Disposable bool
	Credential *Credential // generated when nil
	SMTP       *SMTP       // one with no relay takes the home's away
	PublicPool *string     // nil: as the home has it; "" takes it away
	Storage    string      // absolute path of a file with a file system: see package imagefs
}

// DefaultDir returns the home of a user who names none: $HOWDAH_HOME, or else /var/lib/howdah for
// root and ~/.howdah for others.
func DefaultDir() string {
	if dir := os.Getenv("HOWDAH_HOME"); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/var/lib/howdah"
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return ".howdah"
	}
	return filepath.Join(user, ".howdah")
}

// Open reads a home that exists. It returns ErrNone if there is none, and ErrRestoring if it is
// half restored.
func Open(dir string) (*Home, error) {
	if _, err := os.Stat(filepath.Join(dir, RestoringFile)); err == nil {
		return nil, fmt.Errorf("%s: %w", dir, ErrRestoring)
	}
	return OpenAny(dir)
}

// OpenAny also reads a home that is half restored.
func OpenAny(dir string) (*Home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find home: %w", err)
	}
	h := &Home{Dir: dir}
	if err := readJSON(h.path(ConfigFile), &h.Config); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", dir, ErrNone)
		}
		return nil, fmt.Errorf("open home: %w", err)
	}
	return h, nil
}

// ConfigFile is the file that makes a directory a home.
const ConfigFile = "howdah.json"

// RestoringFile is in a home while package restore puts it in place, and after such a restore was
// interrupted. A home with this file does not start.
const RestoringFile = "restoring.mark"

// Ensure opens the home in dir, making it first if there is none.
func Ensure(dir string, options Options) (*Home, error) {
	h, err := Open(dir)
	if errors.Is(err, ErrNone) {
		return create(dir, options)
	}
	if err != nil {
		return nil, err
	}
	if h.change(options) {
		if err := writeJSON(h.path(ConfigFile), h.Config, 0o644); err != nil {
			return nil, fmt.Errorf("change the home: %w", err)
		}
	}
	if options.Credential != nil {
		return h, h.addCredential(*options.Credential)
	}
	return h, nil
}

// change takes over the options that may change, and reports whether any did.
func (h *Home) change(options Options) bool {
	changed := false
	if options.Listen != "" && options.Listen != h.Listen {
		h.Listen, changed = options.Listen, true
	}
	if options.PublicPool != nil && *options.PublicPool != h.PublicPool {
		h.PublicPool, changed = *options.PublicPool, true
	}
	if options.SMTP != nil {
		h.SMTP, changed = options.SMTP.orNone(), true
	}
	return changed
}

func (s *SMTP) orNone() *SMTP {
	if s == nil || s.Relay == "" {
		return nil
	}
	return s
}

// create makes a home. It writes the configuration last: a home without it does not exist yet, and
// the next call begins again.
func create(dir string, options Options) (*Home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	// Others may only search the directory. The databases' own user passes through, and everything
	// inside has a mode of its own.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	id := randomHex(4)
	network, err := chooseNetwork(id)
	if err != nil {
		return nil, err
	}
	h := &Home{Dir: dir, Config: Config{
		ID: id, Network: network, Region: options.Region, Listen: options.Listen,
		Disposable: options.Disposable, DataRoot: dataRoot(dir, id), Created: time.Now().UTC(),
		SMTP: options.SMTP.orNone(), Storage: options.Storage,
	}}
	if options.PublicPool != nil {
		h.PublicPool = *options.PublicPool
	}
	if h.Region == "" {
		h.Region = DefaultRegion
	}
	if h.Listen == "" {
		h.Listen = fmt.Sprintf("%s:%d", h.Address(0, 1), APIPort)
	}
	if err := h.makeSecrets(options.Credential); err != nil {
		return nil, err
	}
	return h, writeJSON(h.path(ConfigFile), h.Config, 0o644)
}

// dataRoot returns a directory inside the home. If the user that runs PostgreSQL could not reach it
// there, as below /root or a private temporary directory, it returns another one.
func dataRoot(dir, id string) string {
	if os.Geteuid() != 0 || reachable(dir) {
		return filepath.Join(dir, "hosts")
	}
	return filepath.Join("/var/lib/howdah-data", id)
}

// reachable reports whether every directory above dir lets others pass.
func reachable(dir string) bool {
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if parent == "/" {
			return true
		}
	}
}

// Address returns an address of the home: number host of the /24 with number block. Block 0 is the
// control plane, 1 are the hosts of `howdah up`, 8 and up are the endpoints.
func (h *Home) Address(block, host int) string {
	return fmt.Sprintf("%s.%d.%d", h.Network, block, host)
}

// EndpointPool returns the range from which database endpoints get their addresses.
func (h *Home) EndpointPool() string { return h.Network + ".8.0/21" }

// CertDir returns the directory of the authority and the control plane's own certificate.
func (h *Home) CertDir() string { return h.path("pki") }

// SignerDir returns the directory of the key with which this control plane signs notifications.
func (h *Home) SignerDir() string { return h.path("pki", "sns") }

// EtcdDir returns the directory of the home's state.
func (h *Home) EtcdDir() string { return h.path("etcd") }

// bornFile exists once the home has had a state.
const bornFile = "etcd.began"

// RepositoryDir is where the default repository of a home on one machine is.
func (h *Home) RepositoryDir() string { return h.path("repository") }

// Begin notes that the home has a state from now on.
func (h *Home) Begin() error {
	return os.WriteFile(h.path(bornFile), nil, 0o644)
}

// Began reports whether the home ever had a state.
func (h *Home) Began() bool {
	_, err := os.Stat(h.path(bornFile))
	return err == nil
}

// EdgeDir returns the directory of the edge.
func (h *Home) EdgeDir() string { return h.path("edge") }

// HostDir returns the directory of one host of `howdah up`.
func (h *Home) HostDir(name string) string { return filepath.Join(h.DataRoot, name) }

// LogFile returns the file into which a part writes its log.
func (h *Home) LogFile(part string) string { return h.path("log", part+".log") }

// AuditDir returns the directory of the control plane's audit log.
func (h *Home) AuditDir() string { return h.path("log") }

// CAFile returns the file with the authority's certificate, which clients of the API and of the
// databases trust.
func (h *Home) CAFile() string { return h.path("pki", "ca.crt") }

// DemoPassFile returns a libpq password file for the databases that `make up` made.
func (h *Home) DemoPassFile() string { return h.path("pgpass") }

// RunDir returns a short path for sockets. The directory is private to the user that runs Howdah.
func (h *Home) RunDir() string { return RunDir(h.ID) }

// RunDir returns the directory for sockets of the home with this id. A socket's path may have only
// 107 bytes, and a home deep in a tree would exceed that.
func RunDir(id string) string {
	if os.Geteuid() == 0 {
		return "/run/howdah/" + id
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "howdah-"+id)
	}
	return fmt.Sprintf("/tmp/howdah-%d-%s", os.Getuid(), id)
}

// MakeRunDir makes that directory so that the databases' user can pass through, whatever the umask
// is, and whoever has made a part of it before.
func MakeRunDir(id string) error {
	dir := RunDir(id)
	if os.Geteuid() != 0 {
		return OpenWay(dir)
	}
	return OpenWay(filepath.Dir(dir), dir)
}

// OpenWay makes directories that every user may pass through and only the owner may list. It also
// changes the mode of directories that are already there. It is idempotent.
func OpenWay(dirs ...string) error {
	for _, dir := range dirs {
		if err := errors.Join(os.MkdirAll(dir, 0o711), os.Chmod(dir, 0o711)); err != nil {
			return fmt.Errorf("make a directory to pass through: %w", err)
		}
	}
	return nil
}

func (h *Home) path(parts ...string) string {
	return filepath.Join(append([]string{h.Dir}, parts...)...)
}

// Purge deletes everything of the home. Nothing of it may run.
func (h *Home) Purge() error {
	errs := []error{os.RemoveAll(h.RunDir())}
	if h.DataRoot != h.path("hosts") {
		errs = append(errs, os.RemoveAll(h.DataRoot))
	}
	// Only what Howdah makes is deleted: somebody may have made the home in a directory with other
	// files.
	for _, name := range []string{"hosts", "etcd", "edge", "pki", "log", "run", "pgpass", secretFile, joinFile, ConfigFile, RestoringFile, bornFile, "restoring", "repository"} {
		errs = append(errs, os.RemoveAll(h.path(name)))
	}
	os.Remove(h.Dir) // stays when something else is in it
	return errors.Join(errs...)
}

func randomHex(n int) string {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic("home: no randomness: " + err.Error())
	}
	return hex.EncodeToString(b)
}

func randomInt(limit int64) int64 {
	n, err := rand.Int(rand.Reader, big.NewInt(limit))
	if err != nil {
		panic("home: no randomness: " + err.Error())
	}
	return n.Int64()
}

func readJSON(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// writeJSON replaces a file in one step and makes it durable.
func writeJSON(path string, value any, mode os.FileMode) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return plainfile.Replace(path, append(data, '\n'), mode)
}

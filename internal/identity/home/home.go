// Package home is the directory that one installation of Howdah lives in: its
// identity, its secrets, its part of the loopback network, and the locks that
// keep two supervisors apart. Several homes run side by side on one machine;
// nothing of one depends on another.
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
	// ErrNone says that a directory holds no home yet.
	ErrNone = errors.New("no Howdah home here: run `howdah up` first")
	// ErrLocked says that another process has the role already.
	ErrLocked = errors.New("already running")
	// ErrNoState says that the state of a home is gone that had one.
	ErrNoState = errors.New("the state of this home is gone: restore it from a backup with `howdah home restore`")
	// ErrRestoring says that a home is half restored.
	ErrRestoring = errors.New("this home is half restored: run `howdah home restore` again, with the same arguments")
)

// DefaultRegion is that of a new home. It is not us-east-1 because the AWS CLI 1
// has an endpoint of its own for RDS in that region, which wins over
// AWS_ENDPOINT_URL (awscli/customizations/overridesslcommonname.py).
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
	// Disposable homes may be wiped in one call: test rigs. Never set later.
	Disposable bool      `json:"disposable"`
	DataRoot   string    `json:"data_root"` // where database files live; usually inside the home
	Created    time.Time `json:"created"`
	// Storage is the file with the file system that is mounted at DataRoot; "": DataRoot is on
	// the disk that it lies on.
	Storage string `json:"storage,omitempty"`
	// PublicPool is the range, as CIDR, that publicly accessible endpoints get their
	// addresses from; "": there is none.
	PublicPool string `json:"public_pool,omitempty"`
	// SMTP is who takes mail to subscribers; nil: there is no mail.
	SMTP *SMTP `json:"smtp,omitempty"`
}

// SMTP is a relay for mail. Its password stays in a file of the user's.
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

// Options are the choices a user has when a home is made. They are ignored,
// save for Listen, PublicPool, Credential and SMTP, for a home that exists.
type Options struct {
	Listen     string
	Region     string
	Disposable bool
	Credential *Credential // generated when nil
	SMTP       *SMTP       // one with no relay takes the home's away
	PublicPool *string     // nil: as the home has it; "" takes it away
	Storage    string      // absolute path of a file with a file system: see package imagefs
}

// DefaultDir is the home of a user who names none: $HOWDAH_HOME, or
// /var/lib/howdah for root and ~/.howdah for others.
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

// Open reads a home that exists; it answers ErrNone where there is none, and
// ErrRestoring where one is half restored.
func Open(dir string) (*Home, error) {
	if _, err := os.Stat(filepath.Join(dir, RestoringFile)); err == nil {
		return nil, fmt.Errorf("%s: %w", dir, ErrRestoring)
	}
	return OpenAny(dir)
}

// OpenAny also reads one that is half restored.
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

// ConfigFile is the file of a home that makes it one.
const ConfigFile = "howdah.json"

// RestoringFile is there while a home is put in place by package restore, also one that
// was interrupted: such a home does not start.
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

// change takes over what may be changed of a home, and reports whether any was.
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

// create writes the configuration last: a home without it does not exist yet,
// and a creation that was interrupted begins again.
func create(dir string, options Options) (*Home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	// Search permission only: the databases' own user passes through, and
	// everything inside has a mode of its own.
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

// dataRoot is inside the home unless the user that runs PostgreSQL could not
// reach it there, as below /root or a private temporary directory.
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

// Address is the host-th address of the home's block-th /24: block 0 is the
// control plane, 1 the hosts of `howdah up`, 8 and up the endpoints.
func (h *Home) Address(block, host int) string {
	return fmt.Sprintf("%s.%d.%d", h.Network, block, host)
}

// EndpointPool is the range that database endpoints get their addresses from.
func (h *Home) EndpointPool() string { return h.Network + ".8.0/21" }

// CertDir holds the authority and the control plane's own certificate.
func (h *Home) CertDir() string { return h.path("pki") }

// SignerDir holds the key that this control plane signs notifications with.
func (h *Home) SignerDir() string { return h.path("pki", "sns") }

// EtcdDir holds the state of the home.
func (h *Home) EtcdDir() string { return h.path("etcd") }

// bornFile is there once the home had a state.
const bornFile = "etcd.began"

// Begin notes that the home has a state from now on.
func (h *Home) Begin() error {
	return os.WriteFile(h.path(bornFile), nil, 0o644)
}

// Began reports whether the home ever had a state.
func (h *Home) Began() bool {
	_, err := os.Stat(h.path(bornFile))
	return err == nil
}

// EdgeDir belongs to the edge.
func (h *Home) EdgeDir() string { return h.path("edge") }

// HostDir is where the files of one host of `howdah up` live.
func (h *Home) HostDir(name string) string { return filepath.Join(h.DataRoot, name) }

// LogFile is where a part writes its log.
func (h *Home) LogFile(part string) string { return h.path("log", part+".log") }

// AuditDir is where the control plane keeps its audit log.
func (h *Home) AuditDir() string { return h.path("log") }

// CAFile is the authority's certificate: what clients of the API and of the
// databases trust.
func (h *Home) CAFile() string { return h.path("pki", "ca.crt") }

// DemoPassFile is a libpq password file for the databases that `make up` made.
func (h *Home) DemoPassFile() string { return h.path("pgpass") }

// RunDir is a short path for sockets, private to the user that runs Howdah.
func (h *Home) RunDir() string { return RunDir(h.ID) }

// RunDir is where sockets of the home with this id live. Socket paths may have
// only 107 bytes, which a home deep in a tree would exceed.
func RunDir(id string) string {
	if os.Geteuid() == 0 {
		return "/run/howdah/" + id
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "howdah-"+id)
	}
	return fmt.Sprintf("/tmp/howdah-%d-%s", os.Getuid(), id)
}

// MakeRunDir makes it, so that the databases' user passes through, whatever the umask
// is and whoever made a part of it before.
func MakeRunDir(id string) error {
	dir := RunDir(id)
	if os.Geteuid() != 0 {
		return OpenWay(dir)
	}
	return OpenWay(filepath.Dir(dir), dir)
}

// OpenWay makes directories that every user may pass through and only the owner may
// list, also of those that are there with another mode. It is idempotent.
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

// Purge deletes everything of the home. Nothing may be running.
func (h *Home) Purge() error {
	errs := []error{os.RemoveAll(h.RunDir())}
	if h.DataRoot != h.path("hosts") {
		errs = append(errs, os.RemoveAll(h.DataRoot))
	}
	// Only what Howdah makes: a home may have been put into a directory with other files.
	for _, name := range []string{"hosts", "etcd", "edge", "pki", "log", "run", "pgpass", secretFile, joinFile, ConfigFile, RestoringFile, bornFile, "restoring"} {
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

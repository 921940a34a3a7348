// Package pgpool sets pgpool-II up before servers of an experiment, runs it, and takes it away. Its
// configuration is the one that was found to work before endpoints that another program moves.
package pgpool

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/identity/certs"
	"howdah/internal/lab/address"
	"howdah/internal/lab/own"
)

// Options say what is run. All fields but Readers are required.
type Options struct {
	Program string
	// Dir is that of the run. What has to be taken away is kept there.
	Dir string
	// Writer takes writes, and reads as well. Readers take reads. All have the user, the password and the
	// database of Writer.
	Writer  address.Server
	Readers []address.Server
	// Clients is how many sessions there may be at once.
	Clients int

	port func() (int, error) // finds one that is free; nil: the kernel's
}

// Pool is a pgpool that runs.
type Pool struct {
	options Options
	record  record
	server  address.Server
	clients string        // the authority of the certificate that it shows to clients, in PEM; "": it has none
	read    int64         // of its log
	ended   chan struct{} // closed when its first process has ended
}

var (
	// ErrCertificate says that a server wants a certificate of its clients.
	ErrCertificate = errors.New("pgpool shows no certificate to servers: the address needs a password in its place")
	// ErrStart says that pgpool does not run. What it says follows.
	ErrStart = errors.New("pgpool does not start")
	// ErrEnded says that pgpool ran, and has ended. What it said follows.
	ErrEnded = errors.New("pgpool has ended")
	// ErrPassword says that pgpool cannot keep a password, or a name.
	ErrPassword = errors.New("pgpool takes no user and no password with a colon or a line break")
)

const (
	startWithin = 30 * time.Second
	attempts    = 3 // as somebody else may take its port
)

// Start starts pgpool and waits until it answers. Whatever an earlier one left in the run's directory is
// taken away first. The caller has to call Stop, unless there is an error.
func Start(ctx context.Context, o Options) (p *Pool, err error) {
	if err := Clear(ctx, o.Dir); err != nil {
		return nil, err
	}
	for range attempts {
		if p, err = start(ctx, o); err == nil || !errors.Is(err, ErrStart) || !strings.Contains(err.Error(), "already in use") {
			return p, err
		}
	}
	return p, err
}

// Server is how clients reach it.
func (p *Pool) Server() address.Server { return p.server }

// Processes lists its processes.
func (p *Pool) Processes() (pids []int) {
	all, err := p.record.processes()
	if err != nil {
		return nil
	}
	for _, e := range all {
		pids = append(pids, e.PID)
	}
	return pids
}

// ticksPerSecond is how Linux counts the processors' time for programs.
const ticksPerSecond = 100

// CPU is how much of the processors all its processes that are there have taken, in seconds.
func (p *Pool) CPU() (seconds float64) {
	all, err := p.record.processes()
	if err != nil {
		return 0
	}
	for _, e := range all {
		seconds += float64(e.Ticks) / ticksPerSecond
	}
	return seconds
}

// Ended returns an error if it has ended by itself, with what it said last.
func (p *Pool) Ended() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%w: %s", ErrEnded, p.Says())
	default:
		return nil
	}
}

// Stop ends it, also if ctx has ended, and removes all its files.
func (p *Pool) Stop(ctx context.Context) error { return Clear(ctx, p.options.Dir) }

func start(ctx context.Context, o Options) (*Pool, error) {
	p := &Pool{options: o, ended: make(chan struct{})}
	settings := o.Writer.Config()
	if t := settings.TLSConfig; t != nil && (len(t.Certificates) > 0 || t.GetClientCertificate != nil) {
		return nil, ErrCertificate
	}
	password := settings.Password
	if password == "" { // nobody else on this machine may come in
		password = rand.Text()
	}
	if strings.ContainsAny(settings.User, ":\r\n") || strings.ContainsAny(password, ":\r\n") {
		return nil, ErrPassword
	}
	c, err := p.plan(settings)
	if err != nil {
		return nil, err
	}
	if err := p.remember(); err != nil {
		return nil, err
	}
	if err = p.write(c, settings.User, password); err == nil {
		err = p.known(c.port, settings, password)
	}
	if err == nil {
		err = p.run(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop(ctx))
	}
	return p, nil
}

// plan chooses what pgpool is told.
func (p *Pool) plan(settings *pgx.ConnConfig) (c config, err error) {
	p.record.Directory = filepath.Join(temporary(), prefix+strings.ToLower(rand.Text()[:12]))
	c = config{dir: p.record.Directory, clients: p.options.Clients, tls: settings.TLSConfig != nil, backends: []backend{backendOf(p.options.Writer)}}
	c.authority = c.tls && rootOf(p.options.Writer) != ""
	for _, s := range p.options.Readers {
		c.backends = append(c.backends, backendOf(s))
	}
	find := p.options.port
	if find == nil {
		find = freePort
	}
	if c.port, err = find(); err != nil {
		return c, err
	}
	c.pcp, err = find()
	return c, err
}

// temporary is a directory that pgpool's user reaches, with a name as the kernel gives it to processes
// that work there.
func temporary() string {
	if dir, err := filepath.EvalSymlinks(os.TempDir()); err == nil {
		return dir
	}
	return os.TempDir()
}

// rootOf is the file of the authority that a server's certificate is checked against; "": it is not.
func rootOf(s address.Server) string {
	u, err := url.Parse(s.Address())
	if err != nil {
		return ""
	}
	if root := u.Query().Get("sslrootcert"); root != "" {
		return root
	}
	return os.Getenv("PGSSLROOTCERT")
}

// remember keeps what has to be taken away.
func (p *Pool) remember() error {
	dir := filepath.Join(p.options.Dir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a directory for pgpool: %w", err)
	}
	text, err := json.Marshal(p.record)
	if err != nil {
		return err
	}
	if err := own.WriteFile(filepath.Join(dir, recordName), text); err != nil {
		return fmt.Errorf("remember pgpool: %w", err)
	}
	return nil
}

// write writes pgpool's files, which belong to its user alone.
func (p *Pool) write(c config, name, password string) error {
	files := map[string]string{configFile: c.text(), hbaFile: c.hba(), passwordFile: passwords(name, password), pcpFile: "", keyFile: rand.Text()}
	if c.authority {
		root, err := os.ReadFile(rootOf(p.options.Writer))
		if err != nil {
			return fmt.Errorf("read the authority of the servers: %w", err)
		}
		files[certs.CAFile] = string(root)
	}
	if c.tls {
		if err := p.ownPair(files); err != nil {
			return err
		}
	}
	owner, err := runsAs()
	if err != nil {
		return err
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return fmt.Errorf("make a directory for pgpool: %w", err)
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(c.dir, file), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write pgpool's files: %w", err)
		}
	}
	if owner == nil {
		return nil
	}
	for file := range files {
		if err := os.Chown(filepath.Join(c.dir, file), int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("write pgpool's files: %w", err)
		}
	}
	return os.Chown(c.dir, int(owner.Uid), int(owner.Gid)) // last: until then nobody else can put a link there
}

// ownPair adds a certificate for clients. Without one pgpool speaks no TLS to servers, either.
func (p *Pool) ownPair(files map[string]string) error {
	// The two names differ: OpenSSL takes a certificate that names itself as its issuer for one of no authority.
	ca, err := certs.New("pgpool of howdah lab")
	if err != nil {
		return fmt.Errorf("make a certificate for pgpool: %w", err)
	}
	pair, err := ca.Issue(certs.Subject{CommonName: loopback, IPs: []net.IP{net.ParseIP(loopback)}, For: certs.ServerOnly})
	if err != nil {
		return fmt.Errorf("make a certificate for pgpool: %w", err)
	}
	files[certs.CertFile], files[certs.KeyFile], p.clients = string(pair.CertPEM), string(pair.KeyPEM), string(pair.CAPEM)
	return nil
}

// known says how clients log in.
func (p *Pool) known(port int, settings *pgx.ConnConfig, password string) (err error) {
	dir, query := filepath.Join(p.options.Dir, folder), url.Values{"sslmode": {"disable"}}
	if p.clients != "" {
		root := filepath.Join(dir, certs.CAFile)
		if err := own.WriteFile(root, []byte(p.clients)); err != nil {
			return fmt.Errorf("write pgpool's files: %w", err)
		}
		query = url.Values{"sslmode": {"verify-ca"}, "sslrootcert": {root}}
	}
	uri := url.URL{
		Scheme: "postgresql", User: url.UserPassword(settings.User, password), Host: net.JoinHostPort(loopback, strconv.Itoa(port)),
		Path: "/" + settings.Database, RawQuery: query.Encode(),
	}
	p.server, err = address.Parse(uri.String(), dir)
	return err
}

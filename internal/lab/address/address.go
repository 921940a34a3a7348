// Package address has the address of a PostgreSQL server, as users write it: for our own connections,
// and for programs that use libpq. Its password is in no argument, log or result.
package address

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/lab/own"
)

// Server is where a PostgreSQL server is, and how one logs in there. Its zero value is of no use.
type Server struct {
	address  string // a URI without a password
	password string
	config   *pgx.ConnConfig
	passfile string
	schema   string
	// application is what sessions are called; "" leaves it to the address and the program.
	application string
}

// ErrForm says that an address is not one of a server.
var ErrForm = errors.New("an address has the form postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE")

// ErrParameter says that an address has a parameter that is not taken in one.
var ErrParameter = errors.New("an address does not take this parameter: a secret belongs into a password file or the environment")

// Parse reads a URI. What is missing comes from the environment and from ~/.pgpass, as with psql. dir is
// a directory of ours in which a file with the password is kept, until it is removed.
func Parse(uri, dir string) (Server, error) {
	if !strings.HasPrefix(uri, "postgresql://") && !strings.HasPrefix(uri, "postgres://") {
		return Server{}, ErrForm
	}
	config, err := pgx.ParseConfig(uri)
	if err != nil {
		return Server{}, ErrForm // pgx repeats the address
	}
	u, err := url.Parse(uri)
	if err != nil {
		return Server{}, ErrForm
	}
	config.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error {
		conn.Frontend().SetMaxBodyLen(mostMessage)
		return nil
	}
	s := Server{password: config.Password, config: config}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	query.Del("password")
	for name := range query {
		if !slices.Contains(taken, name) {
			return Server{}, fmt.Errorf("%w: %.40q", ErrParameter, name)
		}
	}
	u.RawQuery = encode(query)
	s.address = u.String()
	if s.password != "" {
		s.passfile = filepath.Join(dir, "pgpass")
		line := "*:*:*:*:" + escape.Replace(s.password) + "\n"
		if err := own.WriteFile(s.passfile, []byte(line)); err != nil {
			return Server{}, fmt.Errorf("keep the password for pgbench: %w", err)
		}
	}
	return s, nil
}

// mostMessage bounds what a server says at once, in bytes: what the lab asks for is never longer.
const mostMessage = 16 << 20

// taken lists the parameters that an address may have: none is a secret, as programs get them as
// arguments, and results name them.
var taken = []string{
	"host", "hostaddr", "port", "dbname", "user", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslsni", "sslnegotiation", "ssl_min_protocol_version",
	"ssl_max_protocol_version", "channel_binding", "gssencmode", "require_auth", "requirepeer", "krbsrvname", "application_name", "client_encoding",
	"connect_timeout", "options", "target_session_attrs", "load_balance_hosts", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
}

// encode writes parameters as libpq reads them: to it, a plus is no space.
func encode(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }

// escape is for a line of a password file.
var escape = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

// Address returns the URI, without a password. It names the schema and the application, too: libpq prefers
// what an address says to the environment.
func (s Server) Address() string {
	u, err := url.Parse(s.address)
	if err != nil || s.schema == "" && s.application == "" {
		return s.address // Parse has read it before
	}
	query := u.Query()
	if s.schema != "" {
		options := query.Get("options")
		if options == "" {
			options = os.Getenv("PGOPTIONS")
		}
		query.Set("options", strings.TrimSpace(options+" -c search_path="+s.schema))
	}
	if s.application != "" {
		query.Set("application_name", s.application)
	}
	u.RawQuery = encode(query)
	return u.String()
}

// Config returns how our own connections are made. The caller may change it.
func (s Server) Config() *pgx.ConnConfig { return s.config.Copy() }

// In returns the server as one sees it whose tables are in a schema. The name of the schema needs no
// quotes.
func (s Server) In(schema string) Server {
	s.config = s.config.Copy()
	s.config.RuntimeParams["search_path"] = schema
	s.schema = schema
	return s
}

// As returns the server as one sees it whose sessions have a name of their own.
func (s Server) As(application string) Server {
	s.config = s.config.Copy()
	s.config.RuntimeParams["application_name"] = application
	s.application = application
	return s
}

// Name is the server's host, port and database, as people say it.
func (s Server) Name() string {
	return fmt.Sprintf("%s:%d/%s", s.config.Host, s.config.Port, s.config.Database)
}

// Environment returns the environment of a program that uses libpq, which connects by Address. Nothing
// else of ours is in it but what libpq itself reads.
func (s Server) Environment() ([]string, error) {
	var all []string
	for _, pair := range os.Environ() {
		// A password of the environment would be preferred to that of the file.
		ours := s.passfile != "" && (strings.HasPrefix(pair, "PGPASSWORD=") || strings.HasPrefix(pair, "PGPASSFILE="))
		if strings.HasPrefix(pair, "PG") && !ours || strings.HasPrefix(pair, "HOME=") {
			all = append(all, pair)
		}
	}
	if s.passfile == "" {
		return all, nil
	}
	if _, err := os.Stat(s.passfile); err != nil {
		return nil, fmt.Errorf("the password for pgbench: %w", err)
	}
	return append(all, "PGPASSFILE="+s.passfile), nil
}

// Package address has the address of a PostgreSQL server, as users write it: for our own connections,
// and for programs that use libpq. Its password is in no argument, log or result.
package address

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Server is where a PostgreSQL server is, and how one logs in there. Its zero value is of no use.
type Server struct {
	address  string // a URI without a password
	password string
	config   *pgx.ConnConfig
	passfile string
	schema   string
}

// ErrForm says that an address is not one of a server.
var ErrForm = errors.New("an address has the form postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE")

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
	s := Server{password: config.Password, config: config}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	query.Del("password")
	u.RawQuery = query.Encode()
	s.address = u.String()
	if s.password != "" {
		s.passfile = filepath.Join(dir, "pgpass")
		line := "*:*:*:*:" + escape.Replace(s.password) + "\n"
		if err := os.WriteFile(s.passfile, []byte(line), 0o600); err != nil {
			return Server{}, fmt.Errorf("keep the password for pgbench: %w", err)
		}
	}
	return s, nil
}

// escape is for a line of a password file.
var escape = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

// Address returns the URI, without a password.
func (s Server) Address() string { return s.address }

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

// Name is the server's host, port and database, as people say it.
func (s Server) Name() string {
	return fmt.Sprintf("%s:%d/%s", s.config.Host, s.config.Port, s.config.Database)
}

// Environment returns the environment of a program that uses libpq, which connects by Address. Nothing
// else of ours is in it but what libpq itself reads.
func (s Server) Environment() ([]string, error) {
	var all []string
	for _, pair := range os.Environ() {
		if strings.HasPrefix(pair, "PG") && !strings.HasPrefix(pair, "PGOPTIONS=") || strings.HasPrefix(pair, "HOME=") {
			all = append(all, pair)
		}
	}
	if options := strings.TrimSpace(os.Getenv("PGOPTIONS") + " " + s.options()); options != "" {
		all = append(all, "PGOPTIONS="+options)
	}
	if s.passfile == "" {
		return all, nil
	}
	if _, err := os.Stat(s.passfile); err != nil {
		return nil, fmt.Errorf("the password for pgbench: %w", err)
	}
	return append(all, "PGPASSFILE="+s.passfile), nil
}

func (s Server) options() string {
	if s.schema == "" {
		return ""
	}
	return "-c search_path=" + s.schema
}

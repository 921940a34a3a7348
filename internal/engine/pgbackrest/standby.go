package pgbackrest

import (
	"fmt"
	"path/filepath"
	"strings"

	"howdah/internal/engine/backup"
)

const (
	// queryTimeout is how long the primary or the standby may take for a query, in seconds. The end
	// of a backup is one, and waits for no WAL. peerTimeout is how long one host may be silent to the
	// other; pgBackRest wants it to be longer.
	queryTimeout = 240
	peerTimeout  = 270
)

// BackupStandby runs the program with a configuration that has both servers.
func (e Engine) BackupStandby(p backup.Place, from backup.Primary, t backup.Take) backup.Prepared {
	access := p.Repositories[p.Index(t.Repository)]
	file := backup.File{Path: filepath.Join(from.Dir, "standby.conf"), Data: []byte(e.config(p, access) + pair(p, from)), Mode: 0o600}
	args := append([]string{"--config=" + file.Path, "--stanza=" + p.Database, "--exclude=pg_tblspc/", "--log-level-console=detail"}, taking(t)...)
	return backup.Prepared{Files: []backup.File{file}, Command: backup.Command{Path: e.Program, Args: append(args, "backup")}}
}

// pair adds the primary to the configuration of a standby.
func pair(p backup.Place, from backup.Primary) string {
	var text strings.Builder
	set := func(name string, value any) { fmt.Fprintf(&text, "%s=%v\n", name, value) }
	set("backup-standby", "y")
	set("db-timeout", queryTimeout)
	set("protocol-timeout", peerTimeout)
	set("pg2-host", from.Address)
	set("pg2-host-type", "tls")
	set("pg2-host-port", from.Port)
	set("pg2-host-ca-file", from.CAFile)
	set("pg2-host-cert-file", from.CertFile)
	set("pg2-host-key-file", from.KeyFile)
	set("pg2-host-config", serving(from.ServerDir))
	set("pg2-path", from.DataDir)
	set("pg2-socket-path", from.SocketDir)
	set("pg2-port", from.PostgresPort)
	set("pg2-user", user(p))
	set("pg2-database", database(p))
	return text.String()
}

// serving is the path of a server's configuration.
func serving(dir string) string { return filepath.Join(dir, "serving.conf") }

// Serve runs the script serve.
func (e Engine) Serve(p backup.Place, s backup.Server) backup.Prepared {
	var text strings.Builder
	set := func(name string, value any) { fmt.Fprintf(&text, "%s=%v\n", name, value) }
	text.WriteString("[global]\n")
	set("lock-path", filepath.Join(s.Dir, "lock"))
	set("log-path", s.Dir)
	set("log-level-file", "off")
	set("log-level-console", "warn")
	set("log-timestamp", "n")
	set("tls-server-address", s.Address)
	set("tls-server-port", s.Port)
	set("tls-server-ca-file", s.CAFile)
	set("tls-server-cert-file", s.CertFile)
	set("tls-server-key-file", s.KeyFile)
	set("tls-server-auth", s.Client+"="+p.Database)
	file := backup.File{Path: serving(s.Dir), Data: []byte(text.String()), Mode: 0o600}
	return backup.Prepared{
		Files: []backup.File{file}, Command: backup.Command{Path: script(p, serveName), Args: []string{file.Path}},
		Leaves: []backup.Link{{Path: filepath.Join(p.DataDir, tablespaces), Lock: filepath.Join(p.Dir, linkLock)}},
	}
}

package pgbackrest

import (
	"cmp"
	_ "embed"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"howdah/internal/engine/backup"
)

// What is compressed and how. zst at level 1 is as fast as two cores read: see docs/design/backup.md.
const (
	compressType  = "zst"
	compressLevel = 1
	// ioTimeout is how long a repository may be silent, in seconds.
	ioTimeout = 20
	// archiveTimeout is how long a backup waits for the WAL that it needs, in seconds. It may have
	// to wait until what was written before it is archived.
	archiveTimeout = 600
)

// tablespaces is the name of the link in the data directory that stands for pg_tblspc.
const tablespaces = "howdah_tablespaces"

//go:embed archive.sh
var archiveScript string

//go:embed fetch.sh
var fetchScript string

//go:embed backup.sh
var backupScript string

//go:embed restore.sh
var restoreScript string

//go:embed prepare.sh
var prepareScript string

//go:embed link.sh
var linkScript string

//go:embed serve.sh
var serveScript string

// Files renders a configuration for each repository, and the scripts.
func (e Engine) Files(p backup.Place) []backup.File {
	var files []backup.File
	for _, access := range p.Repositories {
		files = append(files, backup.File{Path: config(p, access), Data: []byte(e.config(p, access)), Mode: 0o600})
	}
	for name, body := range scripts {
		files = append(files, backup.File{Path: script(p, name), Data: []byte(e.script(p, *body)), Mode: 0o700})
	}
	return sorted(files)
}

// config is the path of a repository's configuration.
func config(p backup.Place, access backup.Access) string {
	return filepath.Join(p.Dir, "repository-"+access.Name+".conf")
}

func (e Engine) config(p backup.Place, access backup.Access) string {
	var text strings.Builder
	set := func(name string, value any) { fmt.Fprintf(&text, "%s=%v\n", name, value) }
	text.WriteString("[global]\n")
	set("lock-path", filepath.Join(p.Dir, "lock-"+access.Name))
	set("spool-path", filepath.Join(p.Dir, "spool"))
	set("log-path", p.Dir)
	set("log-level-file", "off")
	set("log-level-console", "warn")
	set("log-timestamp", "n")
	set("io-timeout", ioTimeout)
	set("archive-timeout", archiveTimeout)
	// archive_mode is always, and the script keeps standbys from pushing.
	set("archive-mode-check", "n")
	set("compress-type", compressType)
	set("compress-level", compressLevel)
	set("process-max", p.Workers())
	set("start-fast", "y")
	set("expire-auto", "n")
	e.repository(set, access)
	fmt.Fprintf(&text, "\n[%s]\n", p.Database)
	set("pg1-path", p.DataDir)
	set("pg1-socket-path", p.SocketDir)
	set("pg1-port", p.Port)
	set("pg1-user", user(p))
	set("pg1-database", database(p))
	return text.String()
}

func user(p backup.Place) string     { return cmp.Or(p.User, "postgres") }
func database(p backup.Place) string { return cmp.Or(p.DBName, "postgres") }

func (e Engine) repository(set func(name string, value any), access backup.Access) {
	set("repo1-path", access.Path)
	if access.Endpoint == "" {
		set("repo1-type", "posix")
	} else {
		host, port := hostPort(access.Endpoint)
		set("repo1-type", "s3")
		set("repo1-s3-endpoint", host)
		set("repo1-storage-port", port)
		set("repo1-storage-ca-file", access.CAFile)
		set("repo1-s3-uri-style", "path")
		set("repo1-s3-bucket", access.Bucket)
		set("repo1-s3-region", "us-east-1") // it is a part of signatures, and means nothing here
		set("repo1-s3-key", access.Key)
		set("repo1-s3-key-secret", access.Secret)
	}
	if access.Passphrase != "" {
		set("repo1-cipher-type", "aes-256-cbc")
		set("repo1-cipher-pass", access.Passphrase)
	}
	set("repo1-bundle", "y")
	if e.Version.blocks() {
		set("repo1-block", "y")
	}
	// What goes is what Expire says.
	set("repo1-retention-full", 9999999)
}

// hostPort takes the URL of an S3 server apart.
func hostPort(endpoint string) (host, port string) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint, "443"
	}
	host, port, err = net.SplitHostPort(u.Host)
	if err != nil {
		return u.Host, "443"
	}
	return host, port
}

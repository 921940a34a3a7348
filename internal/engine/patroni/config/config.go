// Package config renders Patroni's configuration of a member. It does no I/O.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"howdah/internal/model/patroni"
)

// Member is everything that a member's configuration depends on.
type Member struct {
	Scope, Name string
	// Dir is the member's directory. Data, certificates, logs and Patroni's own files are below it.
	// PostgreSQL's logs are outside the data directory, so that neither a copy nor a rewind
	// replaces them.
	Dir      string
	Address  string // IP to listen on and to be reached at
	Port     int    // of PostgreSQL
	RESTPort int
	BinDir   string // of PostgreSQL's programs
	// Programs maps names of PostgreSQL's programs to programs that are called in place of those in
	// BinDir.
	Programs  map[string]string
	Modules   string // directory with our own loadable modules
	SocketDir string // short path, private to the database's user
	// Gate is a program, with its arguments, that Patroni asks before each promotion. It gets the
	// path of the configuration, and exit code 0 lets the member through. nil means that there is
	// no gate.
	Gate []string
	// EtcdHosts are the addresses of etcd as host:port. For a member with a key of its own they are
	// those of the gates before etcd.
	EtcdHosts []string
	OSUsers   []string // operating-system users that may be rdsadmin on the socket

	Parameters map[string]string // PostgreSQL settings of this member alone
	Cluster    patroni.Cluster   // used when the member bootstraps the database
	Tier       int               // promotion tier, 0 (first) to 15
	Boost      bool              // the wanted winner of the next election
	NoFailover bool              // never to be promoted
	NoSync     bool              // not to confirm commits
	RequireTLS bool
	// Allow lists the networks that users may connect from; nil admits all.
	Allow []string
	// Tokens, if set, is how users of rds_iam log in.
	Tokens *Tokens
	Keys   Keys
	// Generation comes back in the member's tags once Patroni has applied this configuration, which
	// proves that it did.
	Generation int64
}

// Keys says which certificates a member shows and accepts. The zero value is for a home whose
// members have no keys of their own: they show their hosts' certificates.
type Keys struct {
	// Admits lists the scopes whose members may copy this one: its own, and those of databases that
	// follow it.
	Admits []string
	// Own says that the member shows a key of its own, which is in OwnDir.
	Own bool
	// Only says that hosts may not copy the member any more.
	Only bool
}

// Tokens says who checks the tokens of users of rds_iam: an LDAP server with TLS on this host, by a
// simple bind. The bind name is the user's name between Prefix and Suffix. Without a port nobody
// checks tokens, and these users are refused.
type Tokens struct {
	Address        string
	Port           int
	Prefix, Suffix string
}

const certFile, keyFile, caFile = "tls.crt", "tls.key", "ca.crt" // as package certs writes them

// ConfigPath returns the path at which the agent puts the rendered configuration.
func (m Member) ConfigPath() string { return filepath.Join(m.Dir, patroni.ConfigFile) }

// DataPath returns the path of PostgreSQL's data directory.
func (m Member) DataPath() string { return filepath.Join(m.Dir, patroni.DataDir) }

type object = map[string]any

// Render returns the member's configuration as JSON, which Patroni reads as YAML. Equal members
// give the same bytes. digest is a digest of the content, and comes back in the member's tags
// (patroni.MemberState.Config). Agents of different releases may make different configurations of
// one generation.
func Render(m Member) (text []byte, digest string, err error) {
	shared, err := m.Cluster.Document()
	if err != nil {
		return nil, "", fmt.Errorf("render configuration of %s/%s: %w", m.Scope, m.Name, err)
	}
	document := m.document(shared)
	text, err = json.Marshal(document)
	if err == nil {
		sum := sha256.Sum256(text)
		digest = hex.EncodeToString(sum[:4])
		document["tags"].(object)[patroni.ConfigTag] = digest
		text, err = json.MarshalIndent(document, "", "  ")
	}
	if err != nil {
		return nil, "", fmt.Errorf("render configuration of %s/%s: %w", m.Scope, m.Name, err)
	}
	return append(text, '\n'), digest, nil
}

func (m Member) document(shared []byte) object {
	tls := m.tls()
	rest := fmt.Sprintf("%s:%d", m.Address, m.RESTPort)
	return object{
		"scope": m.Scope,
		"name":  m.Name,
		"log": object{
			"dir": filepath.Join(m.Dir, patroni.LogDir), "file_num": 4, "file_size": 5 << 20, "mode": "0600",
		},
		"restapi": object{
			"listen": rest, "connect_address": rest, "verify_client": "required",
			"certfile": tls.cert, "keyfile": tls.key, "cafile": tls.clients,
		},
		"ctl": object{"certfile": tls.own, "keyfile": tls.ownKey, "cacert": tls.ca},
		"etcd3": object{
			"hosts": m.EtcdHosts, "protocol": "https", "cacert": tls.ca, "cert": tls.own, "key": tls.ownKey,
		},
		"bootstrap": object{
			"dcs":    json.RawMessage(shared),
			"initdb": []any{"data-checksums"},
		},
		"postgresql": m.postgresql(tls),
		"tags":       m.tags(),
	}
}

func (m Member) postgresql(tls tlsFiles) object {
	listen := fmt.Sprintf("%s:%d", m.Address, m.Port)
	// Replication and rewind log in by certificate: there is no password to leak.
	byCertificate := object{
		"username": "rdsrepladmin", "sslmode": "verify-ca",
		"sslcert": tls.own, "sslkey": tls.ownKey, "sslrootcert": tls.ca,
	}
	parameters := object{
		"unix_socket_directories":  m.SocketDir,
		"dynamic_library_path":     "$libdir:" + m.Modules,
		"ssl":                      "on",
		"ssl_cert_file":            tls.cert,
		"ssl_key_file":             tls.key,
		"ssl_ca_file":              tls.clients,
		"ssl_min_protocol_version": "TLSv1.2",
		"log_directory":            filepath.Join(m.Dir, patroni.LogDir),
	}
	for name, value := range m.Parameters {
		parameters[name] = value
	}
	document := object{
		"listen": listen, "connect_address": listen,
		"data_dir": m.DataPath(), "bin_dir": m.BinDir, "bin_name": m.Programs,
		"database": "rdsadmin", "use_unix_socket": true,
		"pgpass": filepath.Join(m.Dir, "pgpass"),
		"authentication": object{
			"superuser":   object{"username": "rdsadmin"},
			"replication": byCertificate,
			"rewind":      byCertificate,
		},
		"parameters": parameters,
		"pg_hba":     m.hba(),
		"pg_ident":   m.ident(),
		"basebackup": []any{object{"checkpoint": "fast"}},
		// What a rewind has to throw away was never acknowledged: whoever lost an
		// election was fenced before it, or stood outside the synchronous set. But what
		// else is there may be the only other copy of what was: the program that stands
		// for pg_rewind has put it aside before Patroni removes what it failed on.
		"remove_data_directory_on_rewind_failure":     true,
		"remove_data_directory_on_diverged_timelines": false,
	}
	if m.Gate != nil {
		document["pre_promote"] = shellWords(append(slices.Clone(m.Gate), m.ConfigPath()))
	}
	return document
}

// shellWords joins words so that Patroni splits them into the same words again.
func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
	}
	return strings.Join(quoted, " ")
}

// hba admits three kinds of callers: the platform on the private socket, the platform's own roles
// by certificate, and users by password from the networks that they may connect from. The order
// matters: the first matching line decides, and a caller that matches no line is refused.
func (m Member) hba() []string {
	lines := []string{
		"local   all         rdsadmin                    peer map=platform",
		"local   all         all                         reject",
		"hostssl replication rdsrepladmin        all     cert map=platform",
		"hostssl all         rdsrepladmin,rdsmon all     cert map=platform",
		"host    all         rdsadmin,rdsrepladmin,rdsmon all reject",
		"host    rdsadmin    all                 all     reject",
	}
	if m.RequireTLS {
		lines = append(lines, "hostnossl all       all                 all     reject")
	}
	networks := []string{"all    "}
	if m.Allow != nil {
		networks = m.Allow
	}
	lines = append(lines, m.Tokens.hba(networks)...)
	for _, network := range networks {
		lines = append(lines, "host    all         all                 "+network+" scram-sha-256")
	}
	return lines
}

// hba has users of rds_iam checked. It requires TLS, as a token is sent in the clear. They may log
// in from the same networks as all other users.
func (t *Tokens) hba(networks []string) []string {
	if t == nil {
		return nil
	}
	check := "reject"
	if t.Port != 0 {
		check = fmt.Sprintf("ldap ldapserver=%s ldapport=%d ldapscheme=ldaps ldapprefix=%q ldapsuffix=%q", t.Address, t.Port, t.Prefix, t.Suffix)
	}
	lines := []string{"hostnossl all       +rds_iam            all     reject"}
	for _, network := range networks {
		lines = append(lines, "hostssl all         +rds_iam            "+network+" "+check)
	}
	return lines
}

// HBAPath returns the path of the file in which Patroni writes who may log in, and how.
func (m Member) HBAPath() string { return filepath.Join(m.DataPath(), "pg_hba.conf") }

// HBA returns what Patroni writes to HBAPath once it has applied this configuration.
func (m Member) HBA() []byte { return []byte(hbaHeader + strings.Join(m.hba(), "\n") + "\n") }

// hbaHeader is the header of all files that Patroni writes.
const hbaHeader = "# Do not edit this file manually!\n# It will be overwritten by Patroni!\n"

func (m Member) ident() []string {
	var lines []string
	for _, user := range m.OSUsers {
		lines = append(lines, fmt.Sprintf("platform %s rdsadmin", user))
	}
	if !m.Keys.Only {
		lines = append(lines, "platform /^agent:.*$ rdsrepladmin")
	}
	lines = append(lines, "platform /^(agent|edge|serve):.*$ rdsmon")
	for _, scope := range m.Keys.Admits {
		lines = append(lines, "platform "+memberOf(scope)+" rdsrepladmin")
	}
	if len(m.Keys.Admits) > 0 {
		// A gate asks the other members how far they are.
		lines = append(lines, "platform "+memberOf(m.Scope)+" rdsmon")
	}
	return lines
}

// memberOf returns the pattern for the names in certificates of a database's members.
func memberOf(scope string) string { return "/^member:" + scope + `\.m[0-9]+$` }

// tags rank the members. In priority mode the synchronous standby alone may win,
// so sync_priority decides; in quorum mode failover_priority breaks the tie of
// equal positions.
func (m Member) tags() object {
	if m.NoFailover {
		return object{"nofailover": true, "nosync": true, "generation": m.Generation}
	}
	if m.NoSync {
		// In quorum mode Patroni may elect the member all the same, if enough voters are not ahead
		// of it. Members with equal positions come first.
		return object{"nosync": true, "failover_priority": 1, "generation": m.Generation}
	}
	priority := 16 - m.Tier
	tags := object{"failover_priority": priority, "sync_priority": priority, "generation": m.Generation}
	if m.Boost {
		tags["failover_priority"] = 100
	}
	return tags
}

// tlsFiles: cert and key are a server's, own and ownKey a client's. ca is whom the member
// believes as a client, and clients whom it does as a server.
type tlsFiles struct{ cert, key, ca, own, ownKey, clients string }

func (m Member) tls() tlsFiles {
	dir, own := filepath.Join(m.Dir, patroni.CertDir), filepath.Join(m.Dir, patroni.OwnDir)
	f := tlsFiles{cert: filepath.Join(dir, certFile), key: filepath.Join(dir, keyFile), ca: filepath.Join(dir, caFile)}
	f.own, f.ownKey, f.clients = f.cert, f.key, f.ca
	if len(m.Keys.Admits) > 0 {
		f.clients = filepath.Join(own, caFile)
	}
	if m.Keys.Own {
		f.own, f.ownKey = filepath.Join(own, certFile), filepath.Join(own, keyFile)
	}
	return f
}

// EtcdHosts turns etcd's client URLs into the form that Patroni's configuration takes.
func EtcdHosts(urls []string) []string {
	hosts := make([]string, len(urls))
	for i, u := range urls {
		hosts[i] = strings.TrimPrefix(u, "https://")
	}
	return hosts
}

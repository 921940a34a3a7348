package pgpool

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"howdah/internal/identity/certs"
	"howdah/internal/lab/address"
)

// Names of the files in pgpool's own directory.
const (
	configFile   = "pgpool.conf"
	hbaFile      = "pool_hba.conf"
	passwordFile = "pool_passwd"
	pcpFile      = "pcp.conf"
	keyFile      = "pool_key"
	logFile      = "pgpool.log"
)

const loopback = "127.0.0.1"

// config is what pgpool is told.
type config struct {
	dir       string // its own
	port, pcp int
	clients   int // how many sessions there may be at once
	backends  []backend
	tls       bool // towards the backends, and towards clients
	authority bool // their certificates are checked against the authority's
}

// backend is a server behind pgpool. The first one takes writes.
type backend struct {
	host string
	port uint16
}

// line is a setting.
type line struct{ name, value string }

// text is pgpool.conf. What takes servers away, or looks for another primary, is off: Howdah does that,
// and pgpool never notices a promotion that it has not made. The first backend is an endpoint that
// follows the writer.
func (c config) text() string {
	lines := []line{
		{"backend_clustering_mode", "streaming_replication"},
		{"listen_addresses", loopback},
		{"port", strconv.Itoa(c.port)},
		{"socket_dir", c.dir}, // up to 4.3
		{"unix_socket_directories", c.dir},
		{"pcp_listen_addresses", loopback},
		{"pcp_port", strconv.Itoa(c.pcp)},
		{"pcp_socket_dir", c.dir},
		{"pid_file_name", c.dir + "/pgpool.pid"},
		{"logdir", c.dir},
		{"log_destination", "stderr"},
		// A process is for one client, and keeps one connection to each backend.
		{"num_init_children", strconv.Itoa(c.clients)},
		{"max_pool", "1"},
		{"reserved_connections", "0"},
		{"child_life_time", "0"},
		{"connection_cache", "on"},
		{"enable_pool_hba", "on"},
		{"pool_passwd", passwordFile},
		{"allow_clear_text_frontend_auth", "off"},
		{"load_balance_mode", "on"},
		{"statement_level_load_balance", "on"},
		{"memory_cache_enabled", "off"},
		{"use_watchdog", "off"},
		{"health_check_period", "0"},
		{"sr_check_period", "0"},
		{"failover_on_backend_error", "off"},
		{"auto_failback", "off"},
	}
	for n, b := range c.backends {
		flag := "DISALLOW_TO_FAILOVER"
		if n == 0 {
			flag = "ALWAYS_PRIMARY|DISALLOW_TO_FAILOVER"
		}
		number := strconv.Itoa(n)
		lines = append(lines, line{"backend_hostname" + number, b.host}, line{"backend_port" + number, strconv.Itoa(int(b.port))},
			line{"backend_weight" + number, "1"}, line{"backend_flag" + number, flag})
	}
	if c.tls {
		lines = append(lines, line{"ssl", "on"}, line{"ssl_cert", c.dir + "/" + certs.CertFile}, line{"ssl_key", c.dir + "/" + certs.KeyFile})
	}
	if c.authority {
		lines = append(lines, line{"ssl_ca_cert", c.dir + "/" + certs.CAFile})
	}
	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&text, "%s = '%s'\n", l.name, strings.ReplaceAll(l.value, "'", "''"))
	}
	return text.String()
}

// hba lets those in who know the password. Where servers have TLS, clients need it as well.
func (c config) hba() string {
	kind := "host"
	if c.tls {
		kind = "hostssl"
	}
	return kind + " all all " + loopback + "/32 scram-sha-256\n"
}

// passwords is pool_passwd. pgpool needs the password itself, to log in to the backends.
func passwords(user, password string) string { return user + ":TEXT" + password + "\n" }

// backendOf is how pgpool reaches a server.
func backendOf(s address.Server) backend {
	c := s.Config()
	return backend{host: c.Host, port: c.Port}
}

// freePort finds a port of the loopback address that nobody has now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0")) //nolint:noctx // it ends at once
	if err != nil {
		return 0, fmt.Errorf("find a port for pgpool: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // a listener of TCP has no other
}

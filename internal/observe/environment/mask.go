package environment

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// masked stands for a secret.
const masked = "***"

// commands are settings that a shell runs. Keys and passwords may be in them in any form, so only
// the name of the program is shown.
var commands = []string{
	"archive_command", "restore_command", "archive_cleanup_command", "recovery_end_command", "ssl_passphrase_command",
}

// harmless are parts of a connection string that hold no secret. All others are masked: a password
// may be in a passfile, a service file, or a parameter of tomorrow.
var harmless = []string{
	"host", "hostaddr", "port", "user", "dbname", "application_name", "connect_timeout", "sslmode", "sslcompression",
	"ssl_min_protocol_version", "ssl_max_protocol_version", "sslsni", "sslnegotiation", "channel_binding", "gssencmode", "target_session_attrs",
	"load_balance_hosts", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "client_encoding", "replication",
	"fallback_application_name",
}

var (
	secretName = regexp.MustCompile(`(?i)passw|passphrase|secret|token|credential|api_?key|access_?key|private|conninfo|salt|jwt|sas_`)
	// notSecret has names that look like a secret's, and are not.
	notSecret = []string{"password_encryption"}
	// simple is a value of an extension's setting that is too plain to be a secret.
	simple = regexp.MustCompile(`^(-?[0-9.]{1,12} ?[a-zA-Z]{0,3}|[a-z_, -]{1,60})$`)
	// userInfo is a password in a URL.
	userInfo = regexp.MustCompile(`(://[^:/@\s]*):[^@/\s]*@`)
	// pairs of a connection string; a value may be in quotes, with backslashes.
	pair = regexp.MustCompile(`(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|[^\s']+)`)
)

// Mask returns the value of a setting without secrets. It would rather hide too much.
func Mask(name, value string) string {
	switch {
	case value == "":
		return value
	case slices.Contains(commands, name):
		return maskCommand(value)
	case name == "primary_conninfo":
		return maskConninfo(value)
	case secretName.MatchString(name) && !slices.Contains(notSecret, name):
		return masked
	case strings.Contains(name, ".") && !simple.MatchString(value):
		return masked // anybody may invent such a setting, for anything
	}
	value = userInfo.ReplaceAllString(value, "$1:"+masked+"@")
	if pair.MatchString(value) && secretName.MatchString(value) {
		return maskPairs(value)
	}
	return value
}

// assignment is a variable that a shell sets for one command.
var assignment = regexp.MustCompile(`^\w+=`)

// maskCommand shows the name of the program, if that is plain.
func maskCommand(value string) string {
	fields := strings.Fields(value)
	if len(fields) == 1 && !assignment.MatchString(fields[0]) {
		return plainName(fields[0])
	}
	for _, field := range fields {
		if assignment.MatchString(field) {
			continue
		}
		return plainName(field) + " " + masked
	}
	return masked
}

var plain = regexp.MustCompile(`^[\w.()-]+$`)

func plainName(program string) string {
	if name := path.Base(program); plain.MatchString(name) {
		return name
	}
	return masked
}

func maskConninfo(value string) string {
	if strings.Contains(value, "://") {
		return masked // its form allows a secret in several places
	}
	return maskPairs(value)
}

// maskPairs keeps the pairs that hold no secret, and nothing that is between them.
func maskPairs(value string) string {
	var kept []string
	for _, m := range pair.FindAllStringSubmatch(value, -1) {
		if slices.Contains(harmless, m[1]) {
			kept = append(kept, m[1]+"="+m[2])
		} else {
			kept = append(kept, m[1]+"="+masked)
		}
	}
	if len(kept) == 0 {
		return masked
	}
	return strings.Join(kept, " ")
}

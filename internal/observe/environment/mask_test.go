package environment

import (
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"shared_buffers", "16384", "16384"},
		{"work_mem", "", ""},
		{"password_encryption", "scram-sha-256", "scram-sha-256"},
		{"synchronous_standby_names", "ANY 1 (a, b)", "ANY 1 (a, b)"},
		{"ssl_key_file", "/etc/ssl/key.pem", "/etc/ssl/key.pem"},
		{"archive_command", "", ""},
		{"archive_command", "pgbackrest --stanza=main --repo1-s3-key-secret=SECRET archive-push %p", "pgbackrest ***"},
		{"archive_command", "AWS_SECRET_ACCESS_KEY=SECRET /usr/bin/wal-g wal-push %p", "wal-g ***"},
		{"archive_command", "/bin/true", "true"},
		{"archive_command", "SECRET=1", "***"},
		{"restore_command", "curl -u user:SECRET https://a/%f -o %p", "curl ***"},
		{"restore_command", "$(cat SECRET) %f", "*** ***"},
		{"ssl_passphrase_command", "echo SECRET", "echo ***"},
		{"primary_conninfo", "host=10.0.0.1 port=5432 user=rep password=SECRET sslmode=verify-full application_name=m2", "host=10.0.0.1 port=5432 user=rep password=*** sslmode=verify-full application_name=m2"},
		{"primary_conninfo", `host=a password='SEC\'RET x' passfile=/SECRET user = b`, "host=a password=*** passfile=*** user=b"},
		{"primary_conninfo", "postgresql://rep:SECRET@a/b?password=SECRET", "***"},
		{"primary_conninfo", "rubbish SECRET", "***"},
		{"app.jwt_secret", "SECRET", "***"},
		{"app.anything", "SECRET7hx9A", "***"},
		{"app.password", "on", "***"},
		{"pg_stat_statements.max", "5000", "5000"},
		{"pg_stat_statements.track", "all", "all"},
		{"auto_explain.log_min_duration", "250 ms", "250 ms"},
		{"some_url", "https://user:SECRET@host/path", "https://user:***@host/path"},
		{"some_connection", "host=a password=SECRET", "host=a password=***"},
	} {
		got := Mask(c.name, c.value)
		if got != c.want {
			t.Errorf("%s = %q is shown as %q, want %q", c.name, c.value, got, c.want)
		}
		if strings.Contains(got, "SECRET") {
			t.Errorf("%s shows a secret", c.name)
		}
	}
}

// Whatever is in a connection string, its password is not shown.
func FuzzMask(f *testing.F) {
	f.Add("host=a password=", " user=b")
	f.Add("postgresql://a:", "@b/c")
	f.Add("password='", "' x")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "QzX7secret"
		for _, name := range []string{"archive_command", "primary_conninfo", "restore_command"} {
			if strings.Contains(before+after, secret) {
				return
			}
			// Of a command the first word is shown, so a secret must not be that.
			if got := Mask(name, "program "+before+secret+after); name != "primary_conninfo" && strings.Contains(got, secret) {
				t.Errorf("%s: %q", name, got)
			}
			if got := Mask(name, "password="+secret+" "+before+after); name == "primary_conninfo" && strings.Contains(got, secret) {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

package unpack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"howdah/extensions"
	"howdah/internal/model/backup"
)

// About is what people are told of a download.
type About struct {
	Snapshot, Database string
	Taken              time.Time
	// User is whoever runs the command, and may log in to the server.
	User      string
	Verifiers bool
	dir       string
}

// ReadMe is the file that says how to use what was downloaded.
const ReadMe = "README.howdah"

// dataFiles are the files that make a plain PostgreSQL of a data directory: it listens on a socket in
// the directory, and lets in the one user who may enter that.
func dataFiles(note backup.DownloadNote, about About) map[string]string {
	return map[string]string{
		"postgresql.conf": settings(note), "postgresql.auto.conf": "",
		"pg_hba.conf":   "# Only whoever pg_ident.conf names gets in, by the socket in this directory.\nlocal all all peer map=owner\n",
		"pg_ident.conf": idents(note, about.User),
		ReadMe:          dataText(note, about),
	}
}

func settings(note backup.DownloadNote) string {
	lines := []string{
		"# Written by `howdah snapshot download`. All else is as PostgreSQL has it.",
		"listen_addresses = ''",
		"unix_socket_directories = '.' # this directory",
		"unix_socket_permissions = 0700",
		"# Subscriptions do not ask their publishers for anything. Remove this line if they are to go on.",
		"max_logical_replication_workers = 0",
	}
	if note.Prepared > 0 {
		lines = append(lines, "# There are transactions that are prepared: see pg_prepared_xacts.", fmt.Sprintf("max_prepared_transactions = %d", note.Prepared))
	}
	if note.Tablespaces {
		lines = append(lines, "# Tablespaces are directories in pg_tblspc.", "allow_in_place_tablespaces = on")
	}
	return strings.Join(lines, "\n") + "\n"
}

// idents lets a user of this machine be any role.
func idents(note backup.DownloadNote, user string) string {
	text := "# As which roles a user of this machine may log in.\n"
	for _, role := range note.Logins {
		if strings.HasPrefix(role, "/") || strings.HasPrefix(role, "+") || strings.ContainsAny(role, "\r\n") {
			continue // that would mean something else here
		}
		text += "owner " + quote(user) + " " + quote(role) + "\n"
	}
	return text
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func heading(kind string, note backup.DownloadNote, about About) string {
	return fmt.Sprintf("This is %s of PostgreSQL %d, with the data that the database\n%s had at %s: those of the snapshot\n%s. `howdah snapshot download` wrote it. It needs nothing of Howdah.\n",
		kind, note.Major, about.Database, about.Taken.UTC().Format(time.DateTime)+"Z", about.Snapshot)
}

// own are the roles of Howdah that can log in.
var own = []string{"rdsadmin", "rdsrepladmin", "rdsmon"}

// theirs are the roles of users that can log in.
func theirs(note backup.DownloadNote) []string {
	return slices.DeleteFunc(slices.Clone(note.Logins), func(role string) bool { return role == note.Superuser || slices.Contains(own, role) })
}

func dataText(note backup.DownloadNote, about About) string {
	as := append(theirs(note), note.Superuser)[0]
	text := heading("a data directory", note, about) + fmt.Sprintf(`
Start it with PostgreSQL %d, and log in as any role:

    pg_ctl -D %s -l %s.log start
    psql -h %s -U %s postgres

`, note.Major, shellWord(about.dir), shellWord(about.dir), shellWord(about.dir), shellWord(as))
	if about.User == "root" {
		text += `PostgreSQL does not run as root: give the directory to another user (chown -R), and put that user's
name in the place of root in pg_ident.conf.

`
	}
	return text + fmt.Sprintf(`- Only the user %s of this machine gets in, by a socket in this directory: see pg_hba.conf and
  pg_ident.conf. The path of the directory may have at most 90 characters or so for that.
- Databases: %s.
%s%s- Settings of the parameter group are not here, but what was set for roles and databases is.
  Extensions need their packages, and collations the locales of this machine.
- Before pg_upgrade, in each database: DROP FUNCTION IF EXISTS pg_catalog.aurora_ccm_status(); and
  DROP EXTENSION IF EXISTS rds_tools; and in the database rdsadmin, DROP SCHEMA IF EXISTS ccm CASCADE;
  and DROP FUNCTION IF EXISTS public.howdah_seen(text); their libraries are Howdah's, or they need
  its functions. Views that users made of these, or of pg_catalog.aurora_replica_status(),
  pg_catalog.aurora_db_instance_identifier(), pg_catalog.aurora_version() or
  pg_catalog.howdah_members(), stop pg_upgrade: drop them first.
- Where rds.logical_replication was on, PostgreSQL's functions about logical slots have other names.
  They get their own again by this, in each database, also before pg_upgrade:

%s
- What users stored is here, also passwords in subscriptions and in user mappings of foreign servers.
- Nothing is encrypted.
`, about.User, strings.Join(note.Databases, ", "), roles(note), passwords(about), indented(extensions.SlotsUndo))
}

// indented sets a text off from what is around it.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(text), "\t", "  "), "\n", "\n    ")
}

func roles(note backup.DownloadNote) string {
	return fmt.Sprintf(`- The roles %s (a superuser), rdsrepladmin, rdsmon, ccm_reader, and those that begin with rds_ are
  Howdah's own. They own some objects, and never had passwords. The search_path of %s has no
  schema but pg_catalog.
`, note.Superuser, note.Superuser)
}

func passwords(about About) string {
	if about.Verifiers {
		return "- Roles have their passwords, as SCRAM verifiers.\n"
	}
	return "- No role has a password: give new ones with ALTER ROLE ... PASSWORD.\n"
}

// dumpFiles are the files beside a dump.
func dumpFiles(note backup.DownloadNote, about About) map[string]string {
	text := heading("a dump", note, about) + `
Restore it into a server of its own, first the roles, and then each database:

    initdb -D NEW -U ` + note.Superuser + `
    pg_ctl -D NEW -l NEW.log start
    psql -U ` + note.Superuser + ` -f ` + backup.GlobalsName + ` postgres
`
	for _, name := range slices.Sorted(maps.Keys(note.Dirs)) {
		if name == "postgres" {
			text += fmt.Sprintf("    pg_restore -U %s -d postgres %s\n", note.Superuser, shellWord(note.Dirs[name]))
			continue
		}
		text += fmt.Sprintf("    pg_restore -U %s -C -d postgres %s\n", note.Superuser, shellWord(note.Dirs[name]))
	}
	text += `
What is there already, such as the role ` + note.Superuser + `, is reported as an error, and stays. In a server that has
roles of these names, ` + backup.GlobalsName + ` changes them: look at it first. A superuser who has one of these names
would lose that right, so it refuses to be read by one.

` + roles(note) + passwords(about) + `- Tablespaces are not here: all goes to the default one.
- What users stored is here, also passwords in subscriptions and in user mappings of foreign servers.
- Nothing is encrypted.
`
	return map[string]string{ReadMe: text}
}

// guard is put before the roles of a dump. It has psql read none of them if that would take its user's
// own rights away: the superuser of a plain server often has the name that a master user has.
func guard(note backup.DownloadNote) string {
	var names []string
	for _, role := range theirs(note) {
		names = append(names, "'"+strings.ReplaceAll(role, "'", "''")+"'")
	}
	if len(names) == 0 {
		return ""
	}
	return "SELECT current_user IN (" + strings.Join(names, ", ") + `) AS howdah_self \gset
\if :howdah_self
\echo 'This file would take the rights of your own role away: log in as another superuser. ` + ReadMe + ` says how.'
\quit
\endif

`
}

// shellWord is a word that a shell takes as it is.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

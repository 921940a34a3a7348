package extension

import (
	"cmp"
	"fmt"
	"strings"
)

// InstallList is what scripts/install reads (scripts/extensions.txt): the name, the Debian package,
// and the source to build of where there is none, of each extension that it installs.
func InstallList() string {
	var b strings.Builder
	b.WriteString("# Extensions, and the Debian packages that have them: N is PostgreSQL's major version.\n" +
		"# Made by howdah gen-extension-list of internal/model/extension: do not edit.\n")
	for _, e := range all {
		if e.Package == "" || e.Refused != "" {
			continue
		}
		fmt.Fprintln(&b, strings.TrimSpace(e.Name+" "+e.Package+" "+e.Source))
	}
	return b.String()
}

const guideIntro = `# Extensions

Written by ` + "`howdah gen-extensions`" + ` from the program's own table: do not edit.

The master user creates and drops extensions as on RDS: ` + "`CREATE EXTENSION postgis`" + `. Other users may
create those that PostgreSQL itself trusts them with, if they may create objects in the database.
Who creates an extension owns it, and may update, move and drop it. What its script made belongs to
the platform.

## Install
Those that come with PostgreSQL are there. The others are Debian packages. Run this on **every
host** that has databases:

    sudo scripts/install --extensions postgis,pg_cron     # or: all

Packages of the PostgreSQL project (PGDG) have the same names, and are taken where the machine's apt
sources have them. Hosts report by themselves what they have, and databases follow within a minute.
Nothing has to be restarted.

- An extension that is not on every host of a database cannot be created there: it would not work
  after a failover. The error names it.
- So cannot a version that is newer than on some host of the database. Ask for the older one
  (` + "`VERSION '…'`" + `), or upgrade the packages on all hosts first. They can be upgraded host by host
  while databases run: a newer library works with the objects of an older version. ` + "`howdah status`" + `
  and an event say which hosts are behind. Then ` + "`ALTER EXTENSION … UPDATE`" + ` brings the objects to the
  new version.
- A new member goes to a host that has what the database's other hosts have, if there is one.
  Otherwise ` + "`howdah status`" + ` says which host lacks what, and extensions that it lacks cannot be
  created until they are installed there.
- ` + "`rds.extensions`" + ` of ` + "`DescribeDBParameters`" + ` lists what can be created. ` + "`SELECT * FROM pg_available_extensions`" + ` shows the versions.

## Preload
Some need their library in ` + "`shared_preload_libraries`" + ` of the parameter group, and a reboot: see the
column *preload*. A value that names another library is refused (InvalidParameterValue), and so is
one that a host of a database with this group does not have: PostgreSQL would not start. A host whose
agent is of an older release does not say what it has. It counts as having what comes with PostgreSQL,
and nothing else: databases there go on with what they have, and get no new library.

`

// Guide is the page of the guide, docs/guide/extensions.md.
func Guide() string {
	var b strings.Builder
	b.WriteString(guideIntro)
	b.WriteString("## To be installed\n| extension | for | Debian package | in Debian 12 | preload | note |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, e := range all {
		if e.Refused == "" && e.Package != "" {
			from := "`" + e.Package + "`"
			if e.Source != "" {
				from += ", or built of a later Debian's `" + e.Source + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", e.Name, e.For, from, cmp.Or(e.Version, "none"), preloadText[e.Preload], e.Note)
		}
	}
	b.WriteString("\n## With PostgreSQL\n| extension | for | preload | note |\n| --- | --- | --- | --- |\n")
	for _, e := range all {
		if e.Refused == "" && e.Package == "" {
			note := e.Note
			if e.bare() {
				note = "a library without an extension"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Name, e.For, preloadText[e.Preload], note)
		}
	}
	b.WriteString("\n## Not for users\nA hole is worse than an extension that is missing. These cannot be created:\n\n| extension | for | why not |\n| --- | --- | --- |\n")
	for _, e := range all {
		if e.Refused != "" {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.Name, e.For, e.Refused)
		}
	}
	return b.String()
}

var preloadText = map[Preload]string{Never: "", May: "may be", Must: "must be", Session: "may be, or `session_preload_libraries`"}

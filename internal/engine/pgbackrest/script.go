package pgbackrest

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
)

// The scripts, by the names of their files. pgBackRest looks for its own name in archive_command.
const (
	archiveName = "pgbackrest-archive"
	fetchName   = "fetch"
	backupName  = "backup"
	restoreName = "restore"
	prepareName = "prepare"
	serveName   = "serve"
	linkName    = "link"
	linkLock    = "link.lock"
)

var scripts = map[string]*string{
	archiveName: &archiveScript, fetchName: &fetchScript, backupName: &backupScript, restoreName: &restoreScript,
	prepareName: &prepareScript, serveName: &serveScript, linkName: &linkScript,
}

func script(p backup.Place, name string) string { return filepath.Join(p.Dir, name) }

// script puts what a script has to know before its body.
func (e Engine) script(p backup.Place, body string) string {
	var configs []string
	for _, access := range p.Repositories {
		configs = append(configs, config(p, access))
	}
	var text strings.Builder
	text.WriteString("#!/bin/sh\n")
	set := func(name, value string) { text.WriteString(name + "=" + quote(value) + "\n") }
	set("program", e.Program)
	set("database", p.Database)
	set("major", strconv.Itoa(p.Major))
	set("dir", p.Dir)
	set("data", p.DataDir)
	// One a line: no path has a newline.
	set("configs", strings.Join(configs, "\n"))
	set("cap", strconv.FormatInt(p.Cap/postgres.SegmentSize, 10))
	set("tablespaces", tablespaces)
	set("linklock", linkLock)
	set("failing", filepath.Join(p.Dir, backup.Failing))
	set("broken", filepath.Join(p.Dir, backup.Broken))
	set("foreign", filepath.Join(p.Dir, backup.Foreign))
	set("patience", filepath.Join(p.Dir, backup.Patience))
	text.WriteString(body)
	return text.String()
}

// quote makes one word of the shell of a text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// setting makes a word of a command that stands in a setting of PostgreSQL, where % begins what is
// replaced.
func setting(path string) string { return quote(strings.ReplaceAll(path, "%", "%%")) }

func sorted(files []backup.File) []backup.File {
	slices.SortFunc(files, func(a, b backup.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

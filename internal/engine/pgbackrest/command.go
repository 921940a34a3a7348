package pgbackrest

import (
	"strconv"

	"howdah/internal/engine/backup"
	backupmodel "howdah/internal/model/backup"
)

// command runs the program for one repository.
func (e Engine) command(p backup.Place, repository string, args ...string) backup.Command {
	conf := config(p, p.Repositories[p.Index(repository)])
	return backup.Command{Path: e.Program, Args: append([]string{"--config=" + conf, "--stanza=" + p.Database}, args...)}
}

// each runs the program for each repository.
func (e Engine) each(p backup.Place, args ...string) []backup.Command {
	var commands []backup.Command
	for _, access := range p.Repositories {
		commands = append(commands, e.command(p, access.Name, args...))
	}
	return commands
}

// around runs a script for one repository.
func around(p backup.Place, name, repository string, args ...string) backup.Command {
	conf := config(p, p.Repositories[p.Index(repository)])
	return backup.Command{Path: script(p, name), Args: append([]string{conf}, args...)}
}

// ArchiveCommand runs the script archive.
func (e Engine) ArchiveCommand(p backup.Place) string {
	return setting(script(p, archiveName)) + ` "%p"`
}

// Create runs the script prepare, which makes what pgBackRest calls a stanza.
func (e Engine) Create(p backup.Place) []backup.Command {
	var commands []backup.Command
	for _, access := range p.Repositories {
		commands = append(commands, around(p, prepareName, access.Name))
	}
	return commands
}

// Renew upgrades the stanza, in pgBackRest's words.
func (e Engine) Renew(p backup.Place) []backup.Command { return e.each(p, "stanza-upgrade") }

// Check pushes a file of WAL.
func (e Engine) Check(p backup.Place) []backup.Command { return e.each(p, "check") }

// annotation is the key under which a backup has its operation.
const annotation = "operation"

// Backup runs the script backup.
func (e Engine) Backup(p backup.Place, t backup.Take) backup.Command {
	return around(p, backupName, t.Repository, taking(t)...)
}

// taking is how the program is told which backup to make.
func taking(t backup.Take) []string {
	kind := "incr"
	if t.Kind == backupmodel.Full {
		kind = "full"
	}
	args := []string{"--type=" + kind}
	if t.Operation != "" {
		args = append(args, "--annotation="+annotation+"="+t.Operation)
	}
	return args
}

// List prints JSON.
func (e Engine) List(p backup.Place, repository string) backup.Command {
	return e.command(p, repository, "--output=json", "info")
}

// Verify reads every file. Releases that do not know of a set there read all of them.
func (e Engine) Verify(p backup.Place, repository, label string) backup.Command {
	args := []string{"--log-level-console=detail"}
	if label != "" {
		args = append(args, "--set="+label)
	}
	return e.command(p, repository, append(args, "verify")...)
}

// Expire removes backups one after the other, and then WAL.
func (e Engine) Expire(p backup.Place, x backup.Expire) []backup.Command {
	var commands []backup.Command
	for _, label := range x.Labels {
		commands = append(commands, e.command(p, x.Repository, "--set="+label, "expire"))
	}
	if x.Archive > 0 {
		commands = append(commands, e.command(p, x.Repository,
			"--repo1-retention-archive-type=incr", "--repo1-retention-archive="+strconv.Itoa(x.Archive), "expire"))
	}
	return commands
}

// Restore runs the script restore.
func (e Engine) Restore(p backup.Place, r backup.Restore) backup.Command {
	return around(p, restoreName, r.Repository, "--set="+r.Label)
}

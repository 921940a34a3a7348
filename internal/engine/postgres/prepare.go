package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"howdah/extensions"
	"howdah/internal/system/owner"
)

// prepareTimeout covers initdb on a slow, busy disk.
const prepareTimeout = 2 * time.Minute

// errBootstrap says that the platform's SQL failed in a new cluster.
var errBootstrap = errors.New("the platform's SQL failed")

// Prepare makes a new cluster in dir, which must not exist yet. A database needs only to move it to
// its place. The cluster has checksums, UTF-8 in the C collation, the superuser rdsadmin, the
// platform's roles and its database. Each cluster has its own system identifier, so that two
// databases can never be mistaken for one another.
func Prepare(ctx context.Context, install Install, user *owner.User, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	// Sorting by byte is fast, and never changes with the C library. The character classes are
	// Unicode's.
	_, err := run(ctx, user, nil, install.Program("initdb"),
		"--pgdata="+dir, "--username=rdsadmin", "--encoding=UTF8", "--lc-collate=C", "--lc-ctype=C.UTF-8",
		"--lc-messages=C", "--lc-monetary=C", "--lc-numeric=C", "--lc-time=C",
		"--data-checksums", "--auth-local=peer", "--auth-host=scram-sha-256")
	if err != nil {
		return fmt.Errorf("make a cluster: %w", err)
	}
	modules, err := Modules(install.Major)
	if err != nil {
		return err
	}
	everywhere, platform := extensions.Bootstrap, settingsTable
	if HasCache(modules) {
		everywhere, platform = everywhere+auroraSQL(), platform+cacheSQL()+cacheDone
	}
	for _, step := range []struct{ database, sql string }{
		{"template1", "CREATE DATABASE rdsadmin;\n\n" + everywhere},
		{"postgres", everywhere},
		{"rdsadmin", extensions.Bootstrap + platform},
	} {
		if err := single(ctx, install, user, dir, modules, step.database, step.sql); err != nil {
			return err
		}
	}
	return nil
}

// settingsTable records in the database itself what was done once to it. So a copy and a promoted
// replica have the record too.
const settingsTable = `CREATE TABLE IF NOT EXISTS public.howdah_done (what text PRIMARY KEY, serial bigint NOT NULL, at timestamptz NOT NULL DEFAULT now());

GRANT SELECT ON public.howdah_done TO rdsmon;

`

// single runs SQL in a cluster on which no server runs. A single-user server always exits with 0,
// so errors are found in its output.
func single(ctx context.Context, install Install, user *owner.User, dir, modules, database, sql string) error {
	out, err := run(ctx, user, strings.NewReader(sql), install.Program("postgres"),
		"--single", "-j", "-D", dir, "-c", "exit_on_error=on", "-c", "log_min_messages=error", "-c", "dynamic_library_path=$libdir:"+modules, database)
	if err != nil {
		return fmt.Errorf("prepare database %s: %w", database, err)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "ERROR:") || strings.Contains(line, "FATAL:") {
			return fmt.Errorf("prepare database %s: %w: %s", database, errBootstrap, strings.TrimSpace(line))
		}
	}
	return nil
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"howdah/extensions"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// CacheModule is the library of cluster cache management (extensions/ccm).
const CacheModule = patroni.CacheLibrary

// CacheSetting switches it on for a member.
const CacheSetting = "ccm.enabled"

// HasCache reports whether a directory of modules has the library.
func HasCache(modules string) bool {
	_, err := os.Stat(filepath.Join(modules, CacheModule+".so"))
	return err == nil
}

// cacheMark is the row of the settings table that keeps cacheSerial, the number of cacheSQL.
const (
	cacheMark   = "ccm"
	cacheSerial = 2
)

// cacheSQL makes what the members ask each other, in the platform's database. It is no extension
// there, as PostgreSQL's own directories have no files of ours. The platform's login is no member of
// ccm_reader: in a database of an earlier release that role may be a tenant's.
func cacheSQL() string {
	return cacheScript() + `GRANT USAGE ON SCHEMA ccm TO rdsrepladmin;

GRANT EXECUTE ON FUNCTION ccm.pull TO rdsrepladmin;

` + quietSQL()
}

// quietSQL keeps what a standby asks with out of the log, whatever users log: it sends up to 1.25 MB
// at a time, many times a minute.
func quietSQL() (sql string) {
	for _, setting := range []string{
		"log_statement = 'none'", "log_duration = off", "log_min_duration_statement = -1", "log_min_duration_sample = -1",
		"log_transaction_sample_rate = 0", "log_parameter_max_length = 0", "log_parameter_max_length_on_error = 0",
		"auto_explain.log_min_duration = -1", "pgaudit.log = 'none'",
	} {
		sql += "ALTER ROLE rdsrepladmin IN DATABASE rdsadmin SET " + setting + ";\n\n"
	}
	return sql
}

func cacheScript() string {
	var kept []string
	for line := range strings.Lines(extensions.Cache) {
		if !strings.HasPrefix(line, `\echo`) { // it keeps psql from running the script
			kept = append(kept, line)
		}
	}
	return strings.ReplaceAll(strings.Join(kept, ""), "MODULE_PATHNAME", CacheModule) + "\n\n"
}

// auroraSQL makes what users ask, in a database of theirs.
func auroraSQL() string {
	_, function, found := strings.Cut(cacheScript(), "CREATE FUNCTION pg_catalog.aurora_ccm_status")
	function, _, ended := strings.Cut(function, ";")
	if !found || !ended {
		panic("extensions/ccm has no aurora_ccm_status")
	}
	return "CREATE OR REPLACE FUNCTION pg_catalog.aurora_ccm_status" + function + ";\n\n"
}

// SetUpCache has a database answer the questions of its standby's cache manager, once for each
// release of what it needs. conn must be rdsadmin's, on the platform's database of a primary that has
// loaded the library. It is idempotent.
func SetUpCache(ctx context.Context, conn *pgx.Conn) error {
	var done int64
	err := conn.QueryRow(ctx, "SELECT serial FROM public.howdah_done WHERE what = $1", cacheMark).Scan(&done)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) || err == nil && done >= cacheSerial {
		return err
	}
	return execAll(ctx, conn, "DROP SCHEMA IF EXISTS ccm CASCADE", "DROP FUNCTION IF EXISTS pg_catalog.aurora_ccm_status()", cacheSQL(), cacheDone)
}

// cacheDone records that all is set up.
var cacheDone = fmt.Sprintf(`INSERT INTO public.howdah_done (what, serial) VALUES ('%s', %d)
	ON CONFLICT (what) DO UPDATE SET serial = excluded.serial, at = now();

`, cacheMark, cacheSerial)

// ErrNoCache says that a standby, or its primary, has no cache manager.
var ErrNoCache = errors.New("no cache manager")

// readCacheSQL reads what the cache manager says. What it found out about warmth holds for a minute, or
// for the time of two scans, if one takes so long.
const readCacheSQL = `SELECT coalesce(state, ''), concat_ws('; ', paused_reason, error), coalesce(warm_percent, 0), coalesce(error, ''),
	coalesce(state NOT IN ('off', 'stopped') AND warm_percent IS NOT NULL
		AND last_scan_at > pg_catalog.now() - interval '1 minute' - 2 * last_scan_ms * interval '1 millisecond', false)
	FROM ccm.reader_status()`

// hopeless lists errors of the cache manager that do not go by themselves.
var hopeless = []string{"other system", "other block size", "other version"}

// ReadCache returns what the cache manager of a standby says. conn must be rdsmon's or rdsadmin's, on
// the platform's database. The error is ErrNoCache if the standby, or its primary, has none.
func ReadCache(ctx context.Context, conn *pgx.Conn) (member.Cache, error) {
	var c member.Cache
	var there bool
	var wrong string
	err := conn.QueryRow(ctx, "SELECT pg_catalog.to_regprocedure('ccm.reader_status()') IS NOT NULL").Scan(&there)
	if err == nil && !there {
		return c, ErrNoCache
	}
	if err == nil {
		err = conn.QueryRow(ctx, readCacheSQL).Scan(&c.State, &c.Why, &c.Percent, &wrong, &c.Known)
	}
	if err != nil {
		return c, fmt.Errorf("ask the cache manager: %w", err)
	}
	if wrong == "no extension" {
		return c, ErrNoCache
	}
	c.Never = slices.Contains(hopeless, wrong)
	return c, nil
}

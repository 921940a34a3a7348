package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	cacheSerial = 1
)

// cacheSQL makes what the members ask each other, in the platform's database. It is no extension
// there, as PostgreSQL's own directories have no files of ours. The platform's login is no member of
// ccm_reader: in a database of an earlier release that role may be a tenant's.
func cacheSQL() string {
	return cacheScript() + `GRANT USAGE ON SCHEMA ccm TO rdsrepladmin;

GRANT EXECUTE ON FUNCTION ccm.pull TO rdsrepladmin;

`
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

// ReadCache returns what the cache manager of a standby says. conn must be rdsmon's or rdsadmin's, on
// the platform's database.
func ReadCache(ctx context.Context, conn *pgx.Conn) (member.Cache, error) {
	var c member.Cache
	err := conn.QueryRow(ctx, `SELECT coalesce(state, ''), concat_ws('; ', paused_reason, error), coalesce(warm_percent, 0) FROM ccm.reader_status()`).
		Scan(&c.State, &c.Why, &c.Percent)
	if err != nil {
		return c, fmt.Errorf("ask the cache manager: %w", err)
	}
	return c, nil
}

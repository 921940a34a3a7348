package postgres

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every file of a data directory counts, even one that PostgreSQL's functions do not know.
func TestMeasureUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const page = 8 << 10
	files := map[string]int{
		"base/5/1259": 3 * page, "base/5/t3_4711": page, "pg_wal/000000010000000000000001": 4 * page,
		"base/pgsql_tmp/pgsql_tmp42.0": page, "base/pgsql_tmp/pgsql_tmp42.1.fileset/o1of2.p0.0": 2 * page,
		"pg_tblspc/17/PG_15_202209061/pgsql_tmp/pgsql_tmp43.0": page, "pg_replslot/cdc/xid-7.spill": 5 * page,
		"pg_notify/0000": page, "pg_stat_tmp/pgss_query_texts.stat": 2 * page, "pg_multixact/members/0000": page,
	}
	want := int64(0)
	for name, size := range files {
		want += int64(size)
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, make([]byte, size), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "large")
	deep := filepath.Join(dir, "base", strings.Repeat("d/", 2*deepest))
	err := errors.Join(os.WriteFile(outside, make([]byte, 100*page), 0o600), os.Symlink(outside, filepath.Join(dir, "base/5/link")),
		os.Symlink(filepath.Dir(outside), filepath.Join(dir, "base/6")), os.MkdirAll(deep, 0o700), os.WriteFile(filepath.Join(deep, "f"), make([]byte, page), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	u, err := MeasureUsage(t.Context(), nil, dir)
	if err != nil || u.Bytes != want {
		t.Errorf("%d bytes, want %d: %v", u.Bytes, want, err)
	}
	if !maps.Equal(u.Sorts, map[int]int64{42: 3 * page, 43: page}) || !maps.Equal(u.Slots, map[string]int64{"cdc": 5 * page}) {
		t.Errorf("%v, %v", u.Sorts, u.Slots)
	}
	if above := Above(u.Sorts, page); len(above) != 1 || above[0] != 42 {
		t.Errorf("%v", above)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MeasureUsage(ended, nil, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("no time: %v", err)
	}
	if _, err := MeasureUsage(t.Context(), nil, filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no data: %v", err)
	}
}

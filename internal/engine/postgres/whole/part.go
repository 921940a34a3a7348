package whole

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// relation is a table, or an index.
type relation struct {
	OID   uint32
	Name  string
	Kind  kind
	Bytes int64
	// Of is the bytes of the table of an index, which is read along with it.
	Of   int64
	Rows float64 // about how many entries an index has
}

// kind is how a relation is looked at.
type kind string

const (
	table kind = "table"
	tree  kind = "tree"  // a B-tree
	other kind = "other" // an index of another kind
)

// part is what is looked at in one go: a relation, or some pages of a large table.
type part struct {
	relation
	database    string
	from, until int64 // pages
	bytes       int64 // of the relation
	last        bool  // of its relation
}

// relationsSQL lists what has a structure that amcheck knows, and other indexes. Tables come with
// their TOAST tables. Indexes that are not valid promise nothing. Unlogged ones are empty after a
// restore. What belongs to the largest table goes first, and indexes go before their table, which
// is looked at in parts: so sessions end at about the same time.
const relationsSQL = `SELECT c.oid, n.nspname || '.' || c.relname,
	CASE WHEN c.relkind <> 'i' THEN 'table' WHEN a.amname = 'btree' THEN 'tree' ELSE 'other' END,
	pg_catalog.pg_relation_size(c.oid), coalesce(pg_catalog.pg_relation_size(i.indrelid), 0), greatest(c.reltuples, 0)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam
WHERE c.relpersistence = 'p' AND (
	c.relkind IN ('r', 'm', 't') AND a.amname = 'heap' OR
	c.relkind = 'i' AND a.amname IN ('btree', 'hash', 'gist', 'gin', 'spgist', 'brin') AND i.indisvalid AND i.indisready AND i.indislive)
ORDER BY pg_catalog.pg_relation_size(coalesce(i.indrelid, c.oid)) DESC, coalesce(i.indrelid, c.oid), c.relkind <> 'i', pg_catalog.pg_relation_size(c.oid) DESC, c.oid`

// The questions. A fault that ends the check of an index is an error of the statement; those of a
// table are rows.
const (
	treeSQL  = `SELECT howdah_check.bt_index_check($1::pg_catalog.oid::pg_catalog.regclass, true)`
	otherSQL = `SELECT howdah_check.pg_prewarm($1::pg_catalog.oid::pg_catalog.regclass, 'buffer')`
	tableSQL = `SELECT 'block ' || coalesce(blkno::text, '?') || ', row ' || coalesce(offnum::text, '?') || ': ' || msg
FROM howdah_check.verify_heapam($1::pg_catalog.oid::pg_catalog.regclass, on_error_stop => true, startblock => $2, endblock => $3)`
)

const (
	pageSize = 8 << 10
	// mostPages is how many pages of a table are looked at in one go: 256 MiB.
	mostPages = 32 << 10
)

// split returns the parts of a relation.
func (r relation) split(database string) []part {
	whole := part{relation: r, database: database, bytes: r.Bytes, last: true}
	if r.Kind != table || r.Bytes < pageSize {
		return []part{whole}
	}
	var parts []part
	for from, pages := int64(0), r.Bytes/pageSize; from < pages; from += mostPages {
		p := whole
		p.from, p.until = from, min(from+mostPages, pages)-1
		p.bytes, p.last = (p.until-p.from+1)*pageSize, p.until == pages-1
		parts = append(parts, p)
	}
	return parts
}

// look returns what is wrong with a part.
func (p part) look(ctx context.Context, conn *pgx.Conn) (says []string, err error) {
	switch p.Kind {
	case tree:
		if err = remember(ctx, conn, p.Rows); err == nil {
			_, err = conn.Exec(ctx, treeSQL, p.OID)
		}
	case other:
		_, err = conn.Exec(ctx, otherSQL, p.OID)
	default:
		args := []any{p.OID, p.from, p.until}
		if p.Bytes < pageSize { // it has no page
			args = []any{p.OID, nil, nil}
		}
		var rows pgx.Rows
		if rows, err = conn.Query(ctx, tableSQL, args...); err == nil {
			says, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
	}
	if found, ok := damage(err); ok {
		return append(says, found), nil
	}
	return says, err
}

// rowBits is how many bits of memory a check of an index has for each row: whether a row is in the
// index is looked up in a Bloom filter, of a size that is a power of two. More memory misses less of
// what lacks, and takes longer, as it is not in the processor's cache.
const rowBits = 2

// remember gives the session memory for the check of an index with about so many rows.
func remember(ctx context.Context, conn *pgx.Conn, rows float64) error {
	mib := 1
	for float64(mib)*(8<<20) < rows*rowBits && mib < mostMemory {
		mib *= 2
	}
	_, err := conn.Exec(ctx, "SET maintenance_work_mem = '"+strconv.Itoa(mib)+"MB'")
	return err
}

// mostMemory bounds the memory of a session, in MiB.
const mostMemory = 256

// damage returns what an error says of the data: that they, an index or a page are damaged, or that a
// file of them cannot be read. Any other error says that the check itself went wrong.
func damage(err error) (says string, ok bool) {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return "", false
	}
	// data_corrupted, index_corrupted; undefined_file and io_error of a file that is missing or short.
	if !slices.Contains([]string{"XX001", "XX002", "58P01", "58030"}, refused.Code) {
		return "", false
	}
	text := refused.Message
	if refused.Detail != "" {
		text += ": " + refused.Detail
	}
	return strings.Join(strings.Fields(text), " "), true
}

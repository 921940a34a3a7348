package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The data are those of a shop: numbers, times, codes that do not repeat, and words that do. Their
// pages compress to about a third by zstd. A tenth of each page is free, so that a change of a row
// changes its page alone.
const (
	makeItems = `CREATE TABLE items (id bigint, at timestamptz, customer int, price numeric(10,2), code text, note text)
		WITH (fillfactor = 90, autovacuum_enabled = off)`
	addItems = `INSERT INTO items SELECT g, timestamptz '2026-01-01' + g * interval '1 s', hashint8(g), (hashint8(g + 1) % 100000) / 100.0,
		md5(g::text) || md5((g + 1)::text), 'ordered by customer ' || hashint8(g) || ', to be delivered by ' || (ARRAY['rail','road','sea','air'])[1 + g % 4]
		FROM generate_series($1::bigint, $2::bigint) g`
	keyItems = "ALTER TABLE items ADD PRIMARY KEY (id)"
	// change is what an update of single rows does, one in each of 1 % of the pages at random.
	change = `UPDATE items SET price = price + 1 WHERE id IN (
		SELECT 1 + floor(random() * $1)::bigint FROM generate_series(1, pg_relation_size('items') / 8192 / 100))`
)

// rowSize is what a row takes in the table and its index, in bytes.
const rowSize = 250

// rowsOf returns how many rows make a database of a size in GB.
func rowsOf(size float64) int64 { return int64(size * gb / rowSize) }

// fill loads a database of a size.
func (s *site) fill(ctx context.Context, size float64) error {
	conn, err := s.login(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, makeItems); err != nil {
		return fmt.Errorf("make a table: %w", err)
	}
	const batch = 500_000
	for first, all := int64(1), rowsOf(size); first <= all; first += batch {
		if _, err := conn.Exec(ctx, addItems, first, min(first+batch-1, all)); err != nil {
			return fmt.Errorf("load rows: %w", err)
		}
	}
	for _, sql := range []string{keyItems, "VACUUM (FREEZE, ANALYZE) items"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// touch changes 1 % of the pages.
func (s *site) touch(ctx context.Context, size float64) error {
	conn, err := s.login(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, change, rowsOf(size)); err != nil {
		return fmt.Errorf("change pages: %w", err)
	}
	return nil
}

func (s *site) login(ctx context.Context) (*pgx.Conn, error) {
	config, err := s.Config(ctx, source)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

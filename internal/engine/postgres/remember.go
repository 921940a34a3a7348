package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/system/owner"
	"howdah/internal/system/plainfile"
)

// What a server has cached is written down for its next start. pg_prewarm writes the list, in its own
// form. Its worker would read it, too, as soon as a server is up and as fast as the disk allows. But
// then a former primary that comes back as a standby takes the disk that its successor's commits wait
// for (measured, with a limit of 3,000 reads a second: 55 % of the throughput for 30 s). So that worker
// does not run, and whoever reads the list does it at a rate of his own.

// listName is pg_prewarm's, in the data directory.
const listName = "autoprewarm.blocks"

// rememberSQL makes what Remember calls.
const rememberSQL = `CREATE OR REPLACE FUNCTION pg_catalog.howdah_remember() RETURNS int8
	LANGUAGE C STRICT AS '$libdir/pg_prewarm', 'autoprewarm_dump_now'`

// Remember has a server write down what it has cached. conn must be rdsadmin's; SetUpAsking was called
// before.
func Remember(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "SELECT pg_catalog.howdah_remember()"); err != nil {
		return fmt.Errorf("write down what is cached: %w", err)
	}
	return nil
}

// ErrList says that a list is not one of pg_prewarm's.
var ErrList = errors.New("the list of what was cached cannot be read")

// Remembered reads what the server of a data directory wrote down last. It returns nothing if there is
// no list. A list that is longer than plainfile.Most is not read: one of 4 GB has some 12 MB.
func Remembered(dataDir string) (map[File]Blocks, error) {
	user, err := owner.Of(dataDir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrList, err)
	}
	var text []byte
	err = user.Do(func() error {
		text, err = plainfile.Read(filepath.Join(dataDir, listName))
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrList, err)
	}
	return parseList(text)
}

// RememberedAt is when the server of a data directory wrote its list down; zero: it has none.
func RememberedAt(dataDir string) (time.Time, error) {
	user, err := owner.Of(dataDir)
	var info os.FileInfo
	if err == nil {
		err = user.Do(func() (err error) {
			info, err = os.Lstat(filepath.Join(dataDir, listName))
			return err
		})
	}
	if errors.Is(err, os.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", ErrList, err)
	}
	return info.ModTime(), nil
}

// parseList reads a number of blocks, and then database, tablespace, file, fork and block of each, in
// any order.
func parseList(text []byte) (map[File]Blocks, error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	each := map[File][]int64{}
	for n := 0; lines.Scan(); n++ {
		var f File
		var block int64
		if n == 0 {
			if _, err := fmt.Sscanf(lines.Text(), "<<%d>>", &block); err != nil {
				return nil, fmt.Errorf("%w: it begins with %.40q", ErrList, lines.Text())
			}
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%d,%d,%d,%d,%d", &f.Database, &f.Tablespace, &f.Node, &f.Fork, &block); err != nil || block < 0 {
			return nil, fmt.Errorf("%w: line %d is %.80q", ErrList, n+1, lines.Text())
		}
		each[f] = append(each[f], block)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrList, err)
	}
	all := map[File]Blocks{}
	for f, numbers := range each {
		all[f] = rangesOf(numbers)
	}
	return all, nil
}

// rangesOf puts numbers of blocks together.
func rangesOf(numbers []int64) (all Blocks) {
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		if last := len(all) - 1; last >= 0 && all[last].To == n {
			all[last].To++
		} else {
			all = append(all, Range{n, n + 1})
		}
	}
	return all
}

// Forget removes what a server wrote down. A standby needs it no more: what it once had as a primary is
// not what is hot when it is promoted. It is idempotent.
func Forget(dataDir string) error {
	user, err := owner.Of(dataDir)
	if err == nil {
		err = user.Do(func() error { return os.Remove(filepath.Join(dataDir, listName)) })
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget what was cached: %w", err)
	}
	return nil
}

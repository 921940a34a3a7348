package target

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"howdah/internal/admin"
	"howdah/internal/engine/postgres"
	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
)

// spareBytes is what a server takes besides the data of an experiment: WAL up to max_wal_size, and its own.
const spareBytes = 1 << 30

// Room refuses servers whose storage does not take so many bytes of data, and hosts that have no room for
// all members. Hosts of this machine share one disk.
func (h *Howdah) Room(ctx context.Context, bytes int64, all []experiment.Wanted) error {
	var status admin.Status
	if err := h.API.Admin(ctx, admin.VerbStatus, admin.Nothing{}, &status); err != nil {
		return err
	}
	free := make([]int64, 0, len(status.Hosts))
	for _, host := range status.Hosts {
		free = append(free, host.DiskFree)
	}
	for _, w := range all {
		if err := room(free, h.Home != nil, bytes+spareBytes, w); err != nil {
			return err
		}
	}
	return nil
}

func room(free []int64, shared bool, need int64, w experiment.Wanted) error {
	if storage := int64(w.Storage) << 30; storage > 0 && need > storage {
		return fmt.Errorf("%w: the data and their WAL take about %s, and the server is to have storage of %s: raise storage, or make the data smaller", ErrRoom, gib(need), gib(storage))
	}
	members := 1 + w.Copies()
	if len(free) == 0 {
		return nil // there is no host, which is refused elsewhere
	}
	if shared {
		if least := slices.Min(free); need*int64(members) > least {
			return fmt.Errorf("%w: %d members take about %s, and this machine's disk has %s free", ErrRoom, members, gib(need*int64(members)), gib(least))
		}
		return nil
	}
	roomy := 0
	for _, bytes := range free {
		if bytes >= need {
			roomy++
		}
	}
	if roomy < min(members, len(free)) {
		return fmt.Errorf("%w: each of %d members takes about %s, and %d of %d hosts have that free", ErrRoom, members, gib(need), roomy, len(free))
	}
	return nil
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// Room refuses data that do not fit onto the server's disk, if that is one of this machine's. What the lab's
// tables take by now counts as free, because they are made anew.
func (a *Address) Room(ctx context.Context, bytes int64, _ []experiment.Wanted) error {
	if bytes == 0 {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, a.Server.Config())
	if err != nil {
		return fmt.Errorf("connect to the target: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	dir := dataDir(ctx, conn, a.Server)
	var disk unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &disk) != nil {
		return nil // nobody knows its room
	}
	var own int64
	err = conn.QueryRow(ctx, `SELECT coalesce(sum(pg_catalog.pg_total_relation_size(c.oid)), 0)::bigint
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`, Schema).Scan(&own)
	if err != nil {
		return fmt.Errorf("ask the target how large the lab's tables are: %w", err)
	}
	need, free := bytes+spareBytes, int64(disk.Bavail)*disk.Bsize+own //nolint:gosec // disks are smaller
	if free < need {
		return fmt.Errorf("%w: the data and their WAL take about %s, and the server's disk has %s free", ErrRoom, gib(need), gib(free))
	}
	return nil
}

// dataDir is the directory of a server on this machine, or "". A tunnel leads elsewhere from an address of
// this machine, so a server must run there that began when this one did.
func dataDir(ctx context.Context, conn *pgx.Conn, server address.Server) string {
	host := server.Config().Host
	if ip := net.ParseIP(host); !strings.HasPrefix(host, "/") && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return ""
	}
	const sql = "SELECT pg_catalog.current_setting('data_directory'), extract(epoch FROM pg_catalog.pg_postmaster_start_time())::bigint"
	var dir string
	var began int64
	if err := conn.QueryRow(ctx, sql).Scan(&dir, &began); err != nil {
		return "" // it takes a privilege to know that
	}
	life, err := postgres.Life(dir)
	if err != nil {
		return ""
	}
	_, since, _ := strings.Cut(life, " since ")
	noted, err := strconv.ParseInt(since, 10, 64)
	if err != nil || noted < began-1 || noted > began+1 {
		return ""
	}
	return dir
}

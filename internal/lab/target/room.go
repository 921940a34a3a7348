package target

import (
	"context"
	"fmt"
	"slices"

	"howdah/internal/admin"
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

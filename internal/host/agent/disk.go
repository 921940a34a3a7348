package agent

import (
	"fmt"
	"syscall"
	"time"

	"howdah/internal/model/member"
)

// diskEvery is how often the room on a member's disk is looked at: a disk takes
// longer than that to fill up.
const diskEvery = time.Second

// disk is the room that is left where a member's data are. It belongs to the
// member's goroutine.
type disk struct {
	looked time.Time
	full   bool
	size   int64 // bytes
	free   int64 // bytes
	detail string
}

// look finds out whether the disk below dir is nearly full. Where nobody can tell,
// what was seen last counts.
func (d *disk) look(dir string, now time.Time) {
	if now.Sub(d.looked) < diskEvery {
		return
	}
	d.looked = now
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return
	}
	size := int64(stat.Blocks) * stat.Bsize
	d.judge(size, roomOn(dir, size, int64(stat.Bavail)*stat.Bsize))
}

// Room returns how large the disk of members is, in bytes, and how much of it is free for them.
func (a *Agent) Room() (size, free int64, err error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(a.Dir, &stat); err != nil {
		return 0, 0, fmt.Errorf("read disk of the host: %w", err)
	}
	size = int64(stat.Blocks) * stat.Bsize
	return size, roomOn(a.Dir, size, int64(stat.Bavail)*stat.Bsize), nil
}

// judge takes sizes in bytes. A disk that was full is so until twice the minimum
// is free, so that the primary role does not go to and fro.
func (d *disk) judge(size, free int64) {
	d.size, d.free = size, free
	d.full = member.NearlyFull(size, free) || d.full && member.NearlyFull(size, free/2)
	d.detail = ""
	if d.full {
		d.detail = fmt.Sprintf("%d of %d MiB are free", free>>20, size>>20)
	}
}

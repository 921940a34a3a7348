package param

import "strconv"

// Databases share disks. So the values of a group must not let one database fill the disk with WAL
// that it keeps: no limit counts that WAL before it is there.

// A database may keep one walShare-th of its storage as WAL by each of the settings in keepWAL, but
// at least leastWAL and at most mostWAL. Both are in MiB.
const (
	walShare = 5
	leastWAL = 2 << 10
	mostWAL  = 64 << 10
)

// keepWAL lists the settings that keep WAL on the disk. Their unit is MiB.
var keepWAL = []string{"max_slot_wal_keep_size", "max_wal_size", "min_wal_size", "wal_keep_size"}

// holdReplay lists the settings for how long a query may hold up the replay of a standby. The
// standby keeps all WAL of that time. Their unit is milliseconds; -1 means for ever.
var holdReplay = []string{"max_standby_archive_delay", "max_standby_streaming_delay"}

// mostHeld is the largest value of the settings in holdReplay, in milliseconds: an hour.
const mostHeld = 3600_000

// bound lowers settings that would make a machine keep more WAL than its storage can hold. The
// check of a group's values cannot do it alone: a group does not know its machines, and groups that
// were changed before there were limits have such values.
func bound(settings map[string]string, m Machine) {
	if m.Storage > 0 {
		most := min(max(m.Storage>>20/walShare, leastWAL), mostWAL)
		for _, name := range keepWAL {
			lower(settings, name, Parameter{Name: name, Type: "integer", Unit: "MB"}, most)
		}
	}
	for _, name := range holdReplay {
		lower(settings, name, Parameter{Name: name, Type: "integer", Unit: "ms"}, mostHeld)
	}
}

// lower reduces a setting to most if it is larger, negative (without a limit) or invalid.
func lower(settings map[string]string, name string, p Parameter, most int64) {
	value, given := settings[name]
	if !given {
		return
	}
	if n, err := p.Number(value); err != nil || n < 0 || n > float64(most) {
		settings[name] = strconv.FormatInt(most, 10)
	}
}

package param

import "strconv"

// What a group says must not have a database fill the disk, which others have their storage
// on: WAL that is kept counts for nobody until it is there.

// walShare is how much of its storage a database may keep as WAL by each of these, as one in
// so many; never less than leastWAL nor more than mostWAL, in MiB.
const (
	walShare = 5
	leastWAL = 2 << 10
	mostWAL  = 64 << 10
)

// keepWAL are the settings, in MiB, by which WAL stays on the disk.
var keepWAL = []string{"max_slot_wal_keep_size", "max_wal_size", "min_wal_size", "wal_keep_size"}

// holdReplay are the settings, in milliseconds, for how long a query may hold the replay of a
// standby up, which keeps all WAL of that time. -1 is for ever.
var holdReplay = []string{"max_standby_archive_delay", "max_standby_streaming_delay"}

// mostHeld is how long that may be: an hour.
const mostHeld = 3600_000

// bound lowers what would have a machine keep more WAL than its storage bears. Groups that were
// changed before there were limits have such values, and a group does not know its machines.
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

// lower has a setting be no more than most, and not without a limit, which is negative.
func lower(settings map[string]string, name string, p Parameter, most int64) {
	value, given := settings[name]
	if !given {
		return
	}
	if n, err := p.Number(value); err != nil || n < 0 || n > float64(most) {
		settings[name] = strconv.FormatInt(most, 10)
	}
}

package pgbackrest

import (
	"regexp"
	"strconv"

	"howdah/internal/engine/backup"
)

// fileLine is a line about one file that was copied, with the share of all bytes:
//
//	P01 DETAIL: backup file /data/base/1/2608 (bundle 1/0, 456KB, 10.22%) checksum …
var fileLine = regexp.MustCompile(`^P\d+ DETAIL: (?:backup|restore|match|copy) file .*[( ](\d{1,3})(?:\.(\d{1,2}))?%\)`)

// Progress reads hundredths of percents.
func (e Engine) Progress(line string) (backup.Progress, bool) {
	match := fileLine.FindStringSubmatch(line)
	if match == nil {
		return backup.Progress{}, false
	}
	whole, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return backup.Progress{}, false
	}
	part := match[2]
	for len(part) < 2 {
		part += "0"
	}
	hundredths, err := strconv.ParseInt(part, 10, 64)
	if err != nil {
		return backup.Progress{}, false
	}
	return backup.Progress{Done: min(whole*100+hundredths, 10000), Of: 10000}, true
}

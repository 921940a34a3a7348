package spec

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	dailyForm = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$`)
	// weeklyShape matches what looks like a weekly window, whether or not its days and times exist.
	weeklyShape = regexp.MustCompile(`^[a-z]{3}:[0-9]{2}:[0-9]{2}-[a-z]{3}:[0-9]{2}:[0-9]{2}$`)
	weeklyForm  = regexp.MustCompile(`^(mon|tue|wed|thu|fri|sat|sun):([01][0-9]|2[0-3]):([0-5][0-9])-(mon|tue|wed|thu|fri|sat|sun):([01][0-9]|2[0-3]):([0-5][0-9])$`)
)

const (
	day  = 24 * 60
	week = 7 * day // minutes
)

var weekdays = map[string]int{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}

// CheckBackupWindow checks a daily window, hh24:mi-hh24:mi in UTC.
func CheckBackupWindow(window string) error {
	_, length, ok := parseDaily(window)
	if !ok {
		return invalidValue("Invalid backup window format: %s. Should be specified as a range hh24:mi-hh24:mi (24H Clock UTC). Example: 04:00-04:30", window)
	}
	if length < 30 {
		return invalidValue("The backup window must be at least 30 minutes.")
	}
	return nil
}

// BackupWindow returns when the daily window opened last, and whether now is inside it. It returns the
// zero time for an invalid window.
func BackupWindow(window string, now time.Time) (opened time.Time, inside bool) {
	start, length, ok := parseDaily(window)
	if !ok {
		return time.Time{}, false
	}
	now = now.UTC()
	since := (now.Hour()*60 + now.Minute() - start + day) % day
	return now.Truncate(time.Minute).Add(-time.Duration(since) * time.Minute), since < length
}

func parseDaily(window string) (start, length int, ok bool) {
	m := dailyForm.FindStringSubmatch(window)
	if m == nil {
		return 0, 0, false
	}
	start = minutes(m[1], m[2])
	return start, (minutes(m[3], m[4]) - start + day) % day, true
}

// CheckWindows checks that a daily and a weekly window do not overlap.
func CheckWindows(backup, maintenance string) error {
	daily, dailyLength, ok := parseDaily(backup)
	weekly, weeklyLength, also := parseWeekly(maintenance)
	if !ok || !also {
		return nil // told by the windows' own checks
	}
	for d := range 7 {
		start := d*day + daily
		if (start-weekly+week)%week < weeklyLength || (weekly-start+week)%week < dailyLength {
			return invalidValue("The backup window and maintenance window must not overlap.")
		}
	}
	return nil
}

// CheckMaintenanceWindow checks a weekly window, ddd:hh24:mi-ddd:hh24:mi in UTC, and returns it in
// lower case.
func CheckMaintenanceWindow(window string) (string, error) {
	asked := window
	window = strings.ToLower(window)
	_, length, ok := parseWeekly(window)
	switch {
	case !ok && weeklyShape.MatchString(window):
		return "", invalidValue("Invalid day:hour:minute value: %s", asked)
	case !ok:
		return "", invalidValue("Invalid maintenance window format: %s. Should be specified as a range ddd:hh24:mi-ddd:hh24:mi (24H Clock UTC). Example: Sun:23:45-Mon:00:15", asked)
	case length < 30:
		return "", invalidValue("The maintenance window must be at least 30 minutes.")
	case length >= day:
		return "", invalidValue("Maintenance window must be less than 24 hours.")
	}
	return window, nil
}

// InMaintenanceWindow reports whether now is inside a weekly window.
func InMaintenanceWindow(window string, now time.Time) bool {
	start, length, ok := parseWeekly(window)
	if !ok {
		return false
	}
	now = now.UTC()
	at := int(now.Weekday())*day + now.Hour()*60 + now.Minute()
	return (at-start+week)%week < length
}

func parseWeekly(window string) (start, length int, ok bool) {
	m := weeklyForm.FindStringSubmatch(window)
	if m == nil {
		return 0, 0, false
	}
	start = weekdays[m[1]]*day + minutes(m[2], m[3])
	end := weekdays[m[4]]*day + minutes(m[5], m[6])
	return start, (end - start + week) % week, true
}

func minutes(hours, mins string) int {
	// The patterns of the windows let only digits through.
	h, _ := strconv.Atoi(hours)
	m, _ := strconv.Atoi(mins)
	return h*60 + m
}

// FillWindows chooses the windows that were not given. The same resource always gets the same
// windows. Different resources are spread over the night and the week. A chosen window does not
// overlap the other one.
func FillWindows(resourceID, backup, maintenance string) (string, string) {
	hash := fnv.New32a()
	hash.Write([]byte(resourceID))
	n := int(hash.Sum32() % (8 * 60))
	names := []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	d := names[int(hash.Sum32()/480)%len(names)]
	askedBackup, askedMaintenance := backup, maintenance
	// A window starts at 22:30 at the latest, so that it ends on the day on which it begins.
	for hours := range 14 {
		at := n + hours*60
		if askedBackup == "" {
			backup = clock(at) + "-" + clock(at+30)
		}
		if askedMaintenance == "" {
			maintenance = d + ":" + clock(at+60) + "-" + d + ":" + clock(at+90)
		}
		if CheckWindows(backup, maintenance) == nil {
			break
		}
	}
	return backup, maintenance
}

func clock(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

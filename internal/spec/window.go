package spec

import (
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	dailyForm  = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$`)
	weeklyForm = regexp.MustCompile(`^(mon|tue|wed|thu|fri|sat|sun):([01][0-9]|2[0-3]):([0-5][0-9])-(mon|tue|wed|thu|fri|sat|sun):([01][0-9]|2[0-3]):([0-5][0-9])$`)
)

const (
	day  = 24 * 60
	week = 7 * day // minutes
)

var weekdays = map[string]int{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}

// CheckBackupWindow checks a daily window, hh24:mi-hh24:mi in UTC.
func CheckBackupWindow(window string) error {
	m := dailyForm.FindStringSubmatch(window)
	if m == nil {
		return invalidValue("Invalid backup window %q: it has the form hh24:mi-hh24:mi.", window)
	}
	if length := (minutes(m[3], m[4]) - minutes(m[1], m[2]) + day) % day; length < 30 {
		return invalidValue("The backup window must be at least 30 minutes.")
	}
	return nil
}

// CheckMaintenanceWindow checks a weekly window, ddd:hh24:mi-ddd:hh24:mi in UTC,
// and answers it in lower case.
func CheckMaintenanceWindow(window string) (string, error) {
	window = strings.ToLower(window)
	start, length, ok := parseWeekly(window)
	if !ok {
		return "", invalidValue("Invalid maintenance window %q: it has the form ddd:hh24:mi-ddd:hh24:mi.", window)
	}
	if length < 30 || length > day {
		return "", invalidValue("The maintenance window must be at least 30 minutes and less than 24 hours.")
	}
	_ = start
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
	// The forms above let only digits through.
	h, _ := strconv.Atoi(hours)
	m, _ := strconv.Atoi(mins)
	return h*60 + m
}

// DefaultWindows spreads resources over the night and the week, always in the
// same way for the same resource.
func DefaultWindows(resourceID string) (backup, maintenance string) {
	hash := fnv.New32a()
	hash.Write([]byte(resourceID))
	n := int(hash.Sum32() % (8 * 60))
	names := []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	d := names[int(hash.Sum32()/480)%len(names)]
	clock := func(at int) string {
		return time.Date(2000, 1, 1, 0, at%day, 0, 0, time.UTC).Format("15:04")
	}
	return clock(n) + "-" + clock(n+30), d + ":" + clock(n+60) + "-" + d + ":" + clock(n+90)
}

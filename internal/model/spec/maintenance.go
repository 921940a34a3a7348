package spec

import "time"

// DBUpgrade is the maintenance action that brings a database to the newest minor version of
// PostgreSQL that is installed on its hosts.
const DBUpgrade = "db-upgrade"

// RotateCertificate is the maintenance action that gives a database's servers certificates of a
// newer authority.
const RotateCertificate = "ca-certificate-rotation"

// OptIn says that a user wants an action in the next maintenance window.
type OptIn struct {
	Action string    `json:"action"`
	At     time.Time `json:"at"`
}

// OptedIn reports whether a user wants an action in the next maintenance window.
func (c Common) OptedIn(action string) bool {
	for _, o := range c.OptIns {
		if o.Action == action {
			return true
		}
	}
	return false
}

// OptIn adds an action for the next maintenance window, or removes it.
func (c *Common) OptIn(action string, wanted bool, now time.Time) {
	var kept []OptIn
	for _, o := range c.OptIns {
		if o.Action != action {
			kept = append(kept, o)
		}
	}
	if wanted {
		kept = append(kept, OptIn{Action: action, At: now})
	}
	c.OptIns = kept
}

// NextMaintenance returns when the weekly window that contains now began, or else when the next one
// begins. It returns the zero time for an invalid window.
func NextMaintenance(window string, now time.Time) time.Time {
	start, length, ok := parseWeekly(window)
	if !ok {
		return time.Time{}
	}
	now = now.UTC().Truncate(time.Minute)
	at := int(now.Weekday())*day + now.Hour()*60 + now.Minute()
	since := (at - start + week) % week
	if since < length {
		return now.Add(-time.Duration(since) * time.Minute)
	}
	return now.Add(time.Duration(week-since) * time.Minute)
}

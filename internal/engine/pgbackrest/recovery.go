package pgbackrest

import (
	"strconv"

	"howdah/internal/engine/backup"
)

// timeForm is how PostgreSQL reads a moment without knowing a time zone.
const timeForm = "2006-01-02 15:04:05.000000+00"

// Recovery has PostgreSQL fetch WAL by the script fetch.
func (e Engine) Recovery(p backup.Place, r backup.Restore) backup.Recovery {
	mode, timeline := "target", "latest"
	set := map[string]string{"recovery_target_action": "promote", "recovery_target_inclusive": "on"}
	switch t := r.Target; {
	case t.Newest:
		mode = "newest"
	case !t.Until.IsZero():
		set["recovery_target_time"] = t.Until.UTC().Format(timeForm)
	case t.LSN != 0:
		set["recovery_target_lsn"] = t.LSN.String()
	case t.Before != "":
		set["recovery_target_xid"] = t.Before
		set["recovery_target_inclusive"] = "off"
	default:
		set["recovery_target"] = "immediate"
		timeline = "current"
	}
	if r.Timeline > 0 {
		timeline = strconv.Itoa(r.Timeline)
	}
	set["recovery_target_timeline"] = timeline
	conf := config(p, p.Repositories[p.Index(r.Repository)])
	set["restore_command"] = setting(script(p, fetchName)) + " " + mode + " " + setting(conf) + ` %f "%p"`
	return backup.Recovery{Signal: "recovery.signal", Settings: set}
}

// CheckWAL runs the script fetch.
func (e Engine) CheckWAL(p backup.Place, r backup.Restore, name, to string) backup.Command {
	conf := config(p, p.Repositories[p.Index(r.Repository)])
	return backup.Command{Path: script(p, fetchName), Args: []string{"check", conf, name, to}}
}

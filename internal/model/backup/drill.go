package backup

import (
	"time"

	"howdah/internal/model/lsn"
)

// JobDrill restores a backup to a place that is thrown away, and looks whether all is there. Its
// arguments are a DrillJob, and its result is a Drilled.
const JobDrill = "drill"

// DrillEvery is how often a database's backups are tried, unless users say otherwise.
const DrillEvery = 7 * Day

// DrillJob asks any host for a drill.
type DrillJob struct {
	Database   string `json:"database"` // resource id
	Repository string `json:"repository"`
	Label      string `json:"label"`
	Major      int    `json:"major"`
	// Newest says that WAL is replayed as far as there is some. Else the data of the backup's end are
	// looked at.
	Newest bool `json:"newest,omitempty"`
	// Encrypted says that the database's storage is encrypted: nothing that is restored may be
	// readable on a disk.
	Encrypted bool `json:"encrypted,omitempty"`
	// Room is how many bytes have to be free on the host's disk before it begins.
	Room int64 `json:"room,omitempty"`
	// What the database's class may use, so that what is measured is what a restore would take:
	// processors, bytes of memory, and operations of the disk a second. 0: what the host chooses.
	CPUs   float64 `json:"cpus,omitempty"`
	Memory int64   `json:"memory,omitempty"`
	IOPS   int64   `json:"iops,omitempty"`
}

// Drilled is what a drill found. A database that is damaged is found, and is no failure of the job.
type Drilled struct {
	Label string `json:"label"`
	// Newest is the time of the newest commit that was restored; zero: none was replayed. EndLSN and
	// Timeline are where replay ended.
	Newest   time.Time `json:"newest,omitzero"`
	EndLSN   lsn.LSN   `json:"end_lsn"`
	Timeline int       `json:"timeline"`
	Bytes    int64     `json:"bytes"` // of the files that were restored
	// Files and Replay are how long it took until the restored server would take clients. Check is how
	// long it took to look at all of it.
	Files  time.Duration `json:"files"`
	Replay time.Duration `json:"replay"`
	Check  time.Duration `json:"check"`
	// What was looked at.
	Databases int `json:"databases"`
	Tables    int `json:"tables"`
	Indexes   int `json:"indexes"`
	// Damaged lists what is damaged, in PostgreSQL's words. Faults counts all of it.
	Damaged []string `json:"damaged,omitempty"`
	Faults  int      `json:"faults,omitempty"`
	// Unrestorable says why the backup cannot be restored. It is "" if it could be.
	Unrestorable string `json:"unrestorable,omitempty"`
	// Backups are the labels of the backups that have files which are damaged or missing in the
	// repository, as far as anybody knows.
	Backups []string `json:"backups,omitempty"`
	// LostWAL is the name of the first file of WAL, or of a history, that is missing or damaged in the
	// repository; "": none is known. EndLSN is where it begins, and Reaches the newest moment before it
	// that can be restored; zero: nobody knows one.
	LostWAL string    `json:"lost_wal,omitempty"`
	Reaches time.Time `json:"reaches,omitzero"`
	// Unlimited says what the host could not limit, and why, a line each.
	Unlimited []string `json:"unlimited,omitempty"`
}

// DrillArgs are the arguments of Drill.
type DrillArgs struct {
	// Repository has the backup. Asked says that somebody asked for the drill.
	Repository string `json:"repository"`
	Asked      bool   `json:"asked,omitempty"`
}

// DrillRecord is the newest drill of a database. The runner of operations writes it.
type DrillRecord struct {
	Database   string    `json:"database"`
	Repository string    `json:"repository"`
	Operation  string    `json:"operation"`
	Host       string    `json:"host"`
	Began      time.Time `json:"began"`
	Ended      time.Time `json:"ended"`
	// Promised is what LatestRestorableTime was when it began; zero: nothing was promised.
	Promised time.Time `json:"promised,omitzero"`
	Drilled
	// Failed says what is wrong, in one line. It is "" if all was well.
	Failed string `json:"failed,omitempty"`
	// Worked is when a drill worked last, this one or an earlier one.
	Worked time.Time `json:"worked,omitzero"`
}

// RTO is how long it took from nothing until the restored database would take clients.
func (d DrillRecord) RTO() time.Duration { return d.Files + d.Replay }

// RPO is how much of the newest time would have been lost if the database had been lost when the
// drill began. known is false if nothing says how new the restored data are.
func (d DrillRecord) RPO() (lost time.Duration, known bool) {
	if d.Newest.IsZero() {
		return 0, false
	}
	return max(0, d.Began.Sub(d.Newest)), true
}

// Judge says what is wrong with what a drill found, or "". promised is LatestRestorableTime when the
// drill began.
func (d Drilled) Judge(promised time.Time) string {
	switch {
	case d.Unrestorable != "":
		return "it cannot be restored: " + d.Unrestorable
	case d.Faults > 0:
		first := "nobody says what"
		if len(d.Damaged) > 0 {
			first = d.Damaged[0]
		}
		return "it is damaged: " + first
	case d.Newest.Before(promised):
		return "the newest commit is of " + shown(d.Newest) + ", and until " + shown(promised) + " was promised"
	}
	return ""
}

func shown(t time.Time) string {
	if t.IsZero() {
		return "nobody knows when"
	}
	return t.UTC().Format(time.RFC3339)
}

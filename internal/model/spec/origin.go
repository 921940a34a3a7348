package spec

import "time"

// Origin is where the data of a restored database come from. It is never changed.
type Origin struct {
	// Live says that the database is a clone of another one, whose files are copied as it runs:
	// Database is that one's resource id, and all else but From is "".
	Live bool `json:"live,omitempty"`
	// Database is the resource id of the database that was backed up, and Repository the name of
	// the repository.
	Database   string `json:"database"`
	Repository string `json:"repository"`
	// Label is the backup to begin with.
	Label string `json:"label"`
	// The data are those of the end of the backup, unless one of these is set. Until is a moment:
	// everything that was committed by then, and nothing later. Newest is all that the archive has.
	Until  time.Time `json:"until,omitzero"`
	LSN    string    `json:"lsn,omitempty"`
	Before string    `json:"before,omitempty"` // transaction id: all before it
	Newest bool      `json:"newest,omitempty"`
	// From is the name of the snapshot or of the database, for the event.
	From string `json:"from"`
	// Snapshot says that From is a snapshot.
	Snapshot bool `json:"snapshot,omitempty"`
}

// Forget takes away what is of the moment, from a copy of a record that is kept: changes that wait
// or are under way, and what the database was made of.
func (c *Common) Forget() {
	c.Pending, c.Before, c.OptIns, c.Origin = nil, nil, nil, nil
	c.Final, c.StopAfter, c.Stopped, c.Deleting = "", "", false, false
	c.MadeBy, c.ClosedBy, c.Expects = "", "", ""
}

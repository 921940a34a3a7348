package backup

import (
	"time"

	"howdah/internal/model/operation"
)

// Rewind gives a database the data of an earlier moment, in its place: clients find them at the same
// endpoint.
var Rewind = operation.Kind{
	Name: "rewind", Within: 24 * time.Hour, Excludes: []operation.Deed{operation.Delete, operation.Change, operation.Restart},
}

// RewindArgs are the arguments of Rewind. It is about the database as it is now.
type RewindArgs struct {
	// Snapshot is the key of the snapshot that is made first.
	Snapshot string `json:"snapshot"`
	// Key and Database are the record's key and the resource id of the hidden database that is restored
	// to take the place.
	Key      string `json:"key"`
	Database string `json:"database"`
	// To says in words what is gone back to.
	To string `json:"to"`
}

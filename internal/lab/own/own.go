// Package own says what is the lab's own: the schema that all is in that it writes to a server, and the
// files that say what it is to do.
package own

const (
	// Schema is the name of the lab's schema.
	Schema = "howdah_lab"
	// Mark is the comment on a schema that the lab made. A schema without it is somebody else's.
	Mark = "made by howdah lab; it may be dropped"
)

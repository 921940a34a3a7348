// Package own says which schema is the lab's own. All that the lab writes is in it.
package own

const (
	// Schema is the name of the lab's schema.
	Schema = "howdah_lab"
	// Mark is the comment on a schema that the lab made. A schema without it is somebody else's.
	Mark = "made by howdah lab; it may be dropped"
)

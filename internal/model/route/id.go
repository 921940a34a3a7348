package route

import "strings"

// Suffixes of the ids of a cluster's routes to its writer and to its readers.
const (
	writerSuffix = "-writer"
	readerSuffix = "-reader"
)

// Writer returns the id of the route to a cluster's writer. cluster is a resource id.
func Writer(cluster string) string { return cluster + writerSuffix }

// Reader returns the id of the route to a cluster's readers. cluster is a resource id.
func Reader(cluster string) string { return cluster + readerSuffix }

// Written returns the resource id of the DB instance or cluster whose writer the route leads to. It
// returns any other id unchanged.
func Written(id string) string { return strings.TrimSuffix(id, writerSuffix) }

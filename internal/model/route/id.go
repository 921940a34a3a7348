package route

import "strings"

// These end the ids of a cluster's routes to its writer and to its readers.
const (
	writerSuffix = "-writer"
	readerSuffix = "-reader"
)

// Writer is the id of the route to a cluster's writer, by the cluster's resource id.
func Writer(cluster string) string { return cluster + writerSuffix }

// Reader is the id of the route to a cluster's readers, by the cluster's resource id.
func Reader(cluster string) string { return cluster + readerSuffix }

// Written is the resource id of the DB instance or cluster whose writer this route leads
// to. Other ids come back as they are.
func Written(id string) string { return strings.TrimSuffix(id, writerSuffix) }

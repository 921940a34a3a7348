// Package event holds what RDS calls events: dated messages about a resource, with RDS's own ids,
// categories and texts ("Amazon RDS event categories and event messages" of the user guides). The
// transaction that changes a resource also writes the event. So no event is lost, and none is told
// twice.
package event

import (
	"fmt"
	"strings"
	"time"

	"howdah/internal/model/spec"
)

// Keep is how long events are kept.
const Keep = 14 * 24 * time.Hour

// SourceType is the type of the resource that an event is about.
type SourceType string

// The source types.
const (
	Instance SourceType = "db-instance"
	Cluster  SourceType = "db-cluster"
	// ParameterGroup stands for both kinds of parameter groups: RDS has one word for them.
	ParameterGroup SourceType = "db-parameter-group"
	// Snapshot is a DB snapshot, ClusterSnapshot a DB cluster snapshot.
	Snapshot        SourceType = "db-snapshot"
	ClusterSnapshot SourceType = "db-cluster-snapshot"
)

// arnKinds holds the resource type in the ARN of each source type.
var arnKinds = map[SourceType]string{
	Instance: "db", Cluster: "cluster", ParameterGroup: "pg", Snapshot: "snapshot", ClusterSnapshot: "cluster-snapshot",
}

// Event is one event.
type Event struct {
	ID         string     `json:"id"` // RDS-EVENT-0005
	SourceType SourceType `json:"source_type"`
	Source     string     `json:"source"` // name
	ARN        string     `json:"arn"`
	Categories []string   `json:"categories"`
	Message    string     `json:"message"`
	At         time.Time  `json:"at"`
}

// Source is the resource that an event is about.
type Source struct {
	spec.Scope
	Type SourceType
	Name string
}

// Make makes the event with a number, such as "0005". A number that begins with H is Howdah's own:
// RDS has no such event. args fill the gaps in the message. Make fails if the catalog does not have
// the number for the type of src.
func Make(src Source, number string, at time.Time, args ...any) (Event, error) {
	kind, ok := catalog[src.Type][number]
	if !ok {
		return Event{}, fmt.Errorf("event %s: not in the catalog of %s", number, src.Type)
	}
	message := kind.message
	if len(args) > 0 {
		message = fmt.Sprintf(message, args...)
	}
	id := "RDS-EVENT-" + number
	if strings.HasPrefix(number, "H") {
		id = "HOWDAH-EVENT-" + number[1:]
	}
	return Event{
		ID: id, SourceType: src.Type, Source: src.Name,
		ARN: src.ARN(arnKinds[src.Type], src.Name), Categories: strings.Split(kind.category, ","),
		Message: message, At: at,
	}, nil
}

// Key returns the key of the event among the events of its scope. It begins with the time, so keys
// sort by time. same distinguishes events of one moment; two events with the same time, ID and same
// are one event. Reconcile removes events that are older than Keep.
func (e Event) Key(same string) string {
	return fmt.Sprintf("%016x-%s-%s", e.At.UnixNano(), e.ID, same)
}

// ARNKind returns the resource type in the ARN of a source of type t.
func ARNKind(t SourceType) string { return arnKinds[t] }

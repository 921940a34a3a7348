// Package event is what RDS calls events: dated messages about a resource, with
// RDS's own ids, categories and texts ("Amazon RDS event categories and event
// messages" of the user guides). An event is written in the transaction of the
// change that it tells of, so that it is neither lost nor told twice.
package event

import (
	"fmt"
	"strings"
	"time"

	"howdah/internal/model/spec"
)

// Keep is how long events are kept.
const Keep = 14 * 24 * time.Hour

// SourceType is what an event is about.
type SourceType string

// The source types.
const (
	Instance SourceType = "db-instance"
	Cluster  SourceType = "db-cluster"
	// ParameterGroup is of both kinds: RDS has one word.
	ParameterGroup SourceType = "db-parameter-group"
)

// arnKinds are the resource types in the names of sources.
var arnKinds = map[SourceType]string{Instance: "db", Cluster: "cluster", ParameterGroup: "pg"}

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

// Make makes the event with this number, such as "0005". Numbers that RDS does
// not have are ours and begin with H. args fill the message's gaps.
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

// Key tells events of a scope apart in the state: it begins with the time. same tells
// events of one moment apart; the same one twice is the same event. Events older than Keep
// are removed by reconcile.
func (e Event) Key(same string) string {
	return fmt.Sprintf("%016x-%s-%s", e.At.UnixNano(), e.ID, same)
}

// ARNKind is the kind of resource in the ARN of an event's source.
func ARNKind(t SourceType) string { return arnKinds[t] }

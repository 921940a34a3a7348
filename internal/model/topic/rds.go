package topic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"howdah/internal/model/event"
	"howdah/internal/model/spec"
)

// eventSubject is the subject of every message about an event of RDS.
const eventSubject = "RDS Notification Message"

// documentation is where RDS explains its events. Receivers read the event id after the #.
const documentation = "http://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_Events.Messages.html"

// eventBody is what RDS publishes about an event. The fields are in RDS's order.
type eventBody struct {
	Source  event.SourceType  `json:"Event Source"`
	Time    string            `json:"Event Time"`
	Link    string            `json:"Identifier Link"`
	ID      string            `json:"Source ID"`
	ARN     string            `json:"Source ARN"`
	EventID string            `json:"Event ID"`
	Message string            `json:"Event Message"`
	Tags    map[string]string `json:"Tags"`
}

// linkKinds holds the words for source types in links.
var linkKinds = map[event.SourceType]string{event.Instance: "dbinstance", event.Cluster: "dbcluster"}

// EventMessage returns the message that an event subscription publishes for an event. key is the
// event's key. base is the URL of the API. tags are the tags of the event's source. The same event
// of the same subscription always gives the same message id.
func EventMessage(s EventSubscription, key string, e event.Event, base string, tags []spec.Tag) (Message, error) {
	scope, topic, ok := ParseARN(s.TopicARN)
	if !ok {
		return Message{}, fmt.Errorf("event subscription %s: topic %q has no ARN", s.Name, s.TopicARN)
	}
	kind, ok := linkKinds[e.SourceType]
	if !ok {
		kind = strings.ReplaceAll(string(e.SourceType), "-", "")
	}
	b := eventBody{
		Source: e.SourceType, Time: e.At.UTC().Format("2006-01-02 15:04:05.000"),
		Link: fmt.Sprintf("%s/rds/home?region=%s#%s:id=%s", base, url.QueryEscape(scope.Region), kind, e.Source),
		ID:   e.Source, ARN: e.ARN, EventID: documentation + "#" + e.ID, Message: e.Message, Tags: map[string]string{},
	}
	for _, t := range tags {
		b.Tags[t.Key] = t.Value
	}
	text, err := plainJSON(b)
	if err != nil {
		return Message{}, err
	}
	return Message{
		Kind: Notification, ID: StableID(s.ARN("es", s.Name), s.TopicARN, key), Scope: scope, Topic: topic, Subject: eventSubject, Body: text, At: e.At,
		Attributes: map[string]Attribute{"EventID": {"String", e.ID}, "Resource": {"String", e.ARN}},
	}, nil
}

// plainJSON encodes JSON without escapes for HTML, as SNS does.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Package topic has what SNS calls topics, subscriptions and messages, and what RDS calls event
// subscriptions. It has their records, and says who gets a message and what the message looks like.
// It does no I/O: package notify delivers.
//
// Invariant: a subscription that is not confirmed gets no message but its own confirmation.
package topic

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"howdah/internal/model/event"
	"howdah/internal/model/spec"
)

// TokenLife is how long a subscription can be confirmed after it was asked for.
const TokenLife = 3 * 24 * time.Hour

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

// GoodName reports whether name is a valid name of a topic.
func GoodName(name string) bool { return nameForm.MatchString(name) }

// The protocols by which Howdah delivers.
const (
	HTTP      = "http"
	HTTPS     = "https"
	Email     = "email"
	EmailJSON = "email-json"
)

// Topic is where messages are published.
type Topic struct {
	spec.Scope
	Name string `json:"name"`
	// Attributes holds the attributes that were set. All others have their defaults.
	Attributes map[string]string `json:"attributes,omitempty"`
	Tags       []spec.Tag        `json:"tags,omitempty"`
	Created    time.Time         `json:"created"`
	// Deleted counts the subscriptions that were deleted.
	Deleted int `json:"deleted,omitempty"`
}

// ARN names the topic.
func (t Topic) ARN() string { return ARN(t.Scope, t.Name) }

// ARN names a topic.
func ARN(s spec.Scope, name string) string {
	return strings.Join([]string{"arn:aws:sns", s.Region, s.Account, name}, ":")
}

// ParseARN splits the ARN of a topic.
func ParseARN(arn string) (s spec.Scope, name string, ok bool) {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 || !isSNS(parts) {
		return s, "", false
	}
	return spec.Scope{Region: parts[3], Account: parts[4]}, parts[5], true
}

// ParseSubscriptionARN splits the ARN of a subscription.
func ParseSubscriptionARN(arn string) (s spec.Scope, topic, id string, ok bool) {
	parts := strings.Split(arn, ":")
	if len(parts) != 7 || !isSNS(parts) || parts[6] == "" {
		return s, "", "", false
	}
	return spec.Scope{Region: parts[3], Account: parts[4]}, parts[5], parts[6], true
}

func isSNS(parts []string) bool {
	return parts[0] == "arn" && strings.HasPrefix(parts[1], "aws") && parts[2] == "sns" && parts[3] != "" && parts[4] != "" && parts[5] != ""
}

// Subscription is one receiver of a topic.
type Subscription struct {
	spec.Scope
	ID       string `json:"id"`
	Topic    string `json:"topic"` // name
	Protocol string `json:"protocol"`
	Endpoint string `json:"endpoint"`
	// Token confirms the subscription, until TokenLife after Asked.
	Token     string    `json:"token"`
	Asked     time.Time `json:"asked"`
	Confirmed bool      `json:"confirmed"`
	// Signed says that a signed call confirmed the subscription.
	Signed bool `json:"signed,omitempty"`
	// Authenticated says that only a signed call may end the subscription.
	Authenticated bool `json:"authenticated,omitempty"`
	// Ended says that the endpoint ended the subscription by a link. The endpoint can take that
	// back with the token. For everyone else the subscription is gone.
	Ended bool `json:"ended,omitempty"`
	// Attributes holds the attributes that were set, as they were given.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// ARN names the subscription.
func (s Subscription) ARN() string { return ARN(s.Scope, s.Topic) + ":" + s.ID }

// Raw reports whether messages are sent without an envelope.
func (s Subscription) Raw() bool { return s.Attributes[RawMessageDelivery] == "true" }

// Expired reports whether it is too late to confirm the subscription.
func (s Subscription) Expired(now time.Time) bool {
	return !s.Confirmed && now.Sub(s.Asked) > TokenLife
}

// The attributes of subscriptions that change what is delivered.
const (
	FilterPolicy       = "FilterPolicy"
	FilterPolicyScope  = "FilterPolicyScope"
	RawMessageDelivery = "RawMessageDelivery"

	ScopeAttributes = "MessageAttributes"
	ScopeBody       = "MessageBody"
)

// GivenUp counts the messages that a subscription should have got and never will get.
type GivenUp struct {
	Messages int64     `json:"messages"`
	Last     time.Time `json:"last"`
}

// GivenUpAttribute is the attribute in which a subscription shows GivenUp, if that is not 0. SNS
// has no such attribute.
const GivenUpAttribute = "HowdahMessagesGivenUp"

// Wants reports whether a message that is published now goes to the subscription. A filter that
// cannot be parsed lets nothing pass. It was checked when it was set.
func (s Subscription) Wants(m Message) bool {
	if !s.Confirmed {
		return false
	}
	text := s.Attributes[FilterPolicy]
	if text == "" {
		return true
	}
	body := s.Attributes[FilterPolicyScope] == ScopeBody
	filter, err := ParseFilter(text, body)
	if err != nil {
		return false
	}
	if body {
		return filter.MatchBody(m.Text(s.Protocol))
	}
	return filter.MatchAttributes(m.Attributes)
}

// Kinds of messages.
const (
	Notification             = "Notification"
	SubscriptionConfirmation = "SubscriptionConfirmation"
	UnsubscribeConfirmation  = "UnsubscribeConfirmation"
)

// Message is a message on its way to the subscribers of a topic.
type Message struct {
	Kind string `json:"kind"`
	ID   string `json:"id"` // the same at every attempt, for receivers to know it again
	spec.Scope
	Topic   string `json:"topic"` // name
	Subject string `json:"subject,omitempty"`
	// Body is bytes so that JSON keeps it short. base64 makes it a third longer; escapes can make
	// it five times as long.
	Body []byte `json:"body"`
	// Other holds the texts for single protocols.
	Other      map[string][]byte    `json:"other,omitempty"`
	Attributes map[string]Attribute `json:"attributes,omitempty"`
	At         time.Time            `json:"at"`
	// Only is set for a confirmation. It is the subscription that the message is about, which may
	// be gone by the time of delivery.
	Only *Subscription `json:"only,omitempty"`
}

// Text returns the body for a protocol.
func (m Message) Text(protocol string) string {
	if text, ok := m.Other[protocol]; ok {
		return string(text)
	}
	return string(m.Body)
}

// Size returns about how many bytes the message takes where it is kept.
func (m Message) Size() int {
	size := 1024 + len(m.Body)*4/3
	for _, text := range m.Other {
		size += len(text) * 4 / 3
	}
	for name, a := range m.Attributes {
		size += len(name) + len(a.Value)
	}
	return size
}

// Attribute is one attribute of a message. Binary values are in base64.
type Attribute struct {
	Type  string `json:"Type"`
	Value string `json:"Value"`
}

// EventSubscription is an event subscription of RDS: it says which events are published to a topic.
type EventSubscription struct {
	spec.Scope
	Name       string           `json:"name"`
	TopicARN   string           `json:"topic_arn"`
	SourceType event.SourceType `json:"source_type,omitempty"` // "": all
	Sources    []string         `json:"sources,omitempty"`     // none: all
	Categories []string         `json:"categories,omitempty"`  // none: all
	Enabled    bool             `json:"enabled"`
	Tags       []spec.Tag       `json:"tags,omitempty"`
	Created    time.Time        `json:"created"`
}

// Wants reports whether the subscription publishes an event.
func (s EventSubscription) Wants(scope spec.Scope, e event.Event) bool {
	if !s.Enabled || s.Scope != scope || e.At.Before(s.Created) {
		return false
	}
	if s.SourceType != "" && s.SourceType != e.SourceType {
		return false
	}
	if len(s.Sources) > 0 && !slices.Contains(s.Sources, e.Source) {
		return false
	}
	return len(s.Categories) == 0 || slices.ContainsFunc(e.Categories, func(c string) bool { return slices.Contains(s.Categories, c) })
}

// StableID returns an id in the form of a UUID. The same parts always give the same id.
func StableID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

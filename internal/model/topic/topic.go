// Package topic is what SNS calls topics, subscriptions and messages, and what RDS
// calls event subscriptions: their records, whom a message goes to, and what it
// looks like. It does no I/O: package notify delivers.
//
// Invariant: nothing but its own confirmation is meant for a subscription that was
// not confirmed.
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

// TokenLife is how long a subscription may be confirmed.
const TokenLife = 3 * 24 * time.Hour

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

// GoodName reports whether a topic may have this name.
func GoodName(name string) bool { return nameForm.MatchString(name) }

// The protocols that Howdah delivers by.
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
	// Attributes are those that were set; others have their defaults.
	Attributes map[string]string `json:"attributes,omitempty"`
	Tags       []spec.Tag        `json:"tags,omitempty"`
	Created    time.Time         `json:"created"`
	// Deleted counts subscriptions that were.
	Deleted int `json:"deleted,omitempty"`
}

// ARN names the topic.
func (t Topic) ARN() string { return ARN(t.Scope, t.Name) }

// ARN names a topic.
func ARN(s spec.Scope, name string) string {
	return strings.Join([]string{"arn:aws:sns", s.Region, s.Account, name}, ":")
}

// ParseARN takes the ARN of a topic apart.
func ParseARN(arn string) (s spec.Scope, name string, ok bool) {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 || !isSNS(parts) {
		return s, "", false
	}
	return spec.Scope{Region: parts[3], Account: parts[4]}, parts[5], true
}

// ParseSubscriptionARN takes the ARN of a subscription apart.
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
	// Token confirms it, until TokenLife after Asked.
	Token     string    `json:"token"`
	Asked     time.Time `json:"asked"`
	Confirmed bool      `json:"confirmed"`
	// Signed: the confirmation was a signed call.
	Signed bool `json:"signed,omitempty"`
	// Authenticated: only who signs may end it.
	Authenticated bool `json:"authenticated,omitempty"`
	// Ended: its endpoint ended it by a link, and may take that back with the token.
	// For everyone else it is gone.
	Ended bool `json:"ended,omitempty"`
	// Attributes are those that were set, as they were given.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// ARN names the subscription.
func (s Subscription) ARN() string { return ARN(s.Scope, s.Topic) + ":" + s.ID }

// Raw: messages come without their envelope.
func (s Subscription) Raw() bool { return s.Attributes[RawMessageDelivery] == "true" }

// Expired: nobody may confirm it any more.
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

// GivenUp counts messages that a subscription should have got and never will.
type GivenUp struct {
	Messages int64     `json:"messages"`
	Last     time.Time `json:"last"`
}

// GivenUpAttribute is what a subscription shows that count as, if there are any. SNS
// has no such attribute.
const GivenUpAttribute = "HowdahMessagesGivenUp"

// Wants reports whether a message that is published now goes to the subscription.
// A filter that does not parse lets nothing pass: it was checked when it was set.
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

// Message is what is on its way to subscribers of a topic.
type Message struct {
	Kind string `json:"kind"`
	ID   string `json:"id"` // the same at every attempt, for receivers to know it again
	spec.Scope
	Topic   string `json:"topic"` // name
	Subject string `json:"subject,omitempty"`
	// Body is bytes so that JSON keeps it short: base64 grows by a third, escapes
	// can by five times.
	Body []byte `json:"body"`
	// Other are the texts for single protocols.
	Other      map[string][]byte    `json:"other,omitempty"`
	Attributes map[string]Attribute `json:"attributes,omitempty"`
	At         time.Time            `json:"at"`
	// Only is the subscription that the message is about, for confirmations: by
	// then it may be gone.
	Only *Subscription `json:"only,omitempty"`
}

// Text is the body for a protocol.
func (m Message) Text(protocol string) string {
	if text, ok := m.Other[protocol]; ok {
		return string(text)
	}
	return string(m.Body)
}

// Size is about how many bytes the message takes where it is kept.
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

// Attribute is one of a message's attributes. Binary values are in base64.
type Attribute struct {
	Type  string `json:"Type"`
	Value string `json:"Value"`
}

// EventSubscription is RDS's: which events are published to a topic.
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

// Wants reports whether an event is published by the subscription.
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

// StableID is an id in the form of a UUID that is the same for the same parts.
func StableID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

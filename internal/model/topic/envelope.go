package topic

import (
	"net/url"
	"strings"
)

// Envelope is a message as SNS sends it to an endpoint. The fields are in SNS's order.
type Envelope struct {
	Type              string               `json:"Type"`
	MessageID         string               `json:"MessageId"`
	Token             string               `json:"Token,omitempty"`
	TopicARN          string               `json:"TopicArn"`
	Subject           string               `json:"Subject,omitempty"`
	Message           string               `json:"Message"`
	SubscribeURL      string               `json:"SubscribeURL,omitempty"`
	Timestamp         string               `json:"Timestamp"`
	SignatureVersion  string               `json:"SignatureVersion"`
	Signature         string               `json:"Signature"`
	SigningCertURL    string               `json:"SigningCertURL"`
	UnsubscribeURL    string               `json:"UnsubscribeURL,omitempty"`
	MessageAttributes map[string]Attribute `json:"MessageAttributes,omitempty"`
}

// NewEnvelope returns the unsigned envelope of a message to a subscription. base is the URL of the
// API.
func NewEnvelope(m Message, s Subscription, base string) Envelope {
	e := Envelope{
		Type: m.Kind, MessageID: m.ID, TopicARN: ARN(m.Scope, m.Topic), Subject: m.Subject, Message: m.Text(s.Protocol),
		Timestamp: m.At.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
	if m.Kind == Notification {
		e.UnsubscribeURL = UnsubscribeURL(base, s)
		e.MessageAttributes = m.Attributes
		return e
	}
	e.Token, e.SubscribeURL = s.Token, SubscribeURL(base, s)
	return e
}

// SubscribeURL returns the link that confirms a subscription. base is the URL of the API.
func SubscribeURL(base string, s Subscription) string {
	return base + "/?Action=ConfirmSubscription&TopicArn=" + url.QueryEscape(ARN(s.Scope, s.Topic)) + "&Token=" + url.QueryEscape(s.Token)
}

// UnsubscribeURL returns the link that ends a subscription. base is the URL of the API.
func UnsubscribeURL(base string, s Subscription) string {
	return base + "/?Action=Unsubscribe&SubscriptionArn=" + url.QueryEscape(s.ARN())
}

// Signed returns the text that the signature covers. It has the name and the value of each member
// that SNS signs, a line each, in the order of the names.
func (e Envelope) Signed() string {
	members := []struct{ name, value string }{
		{"Message", e.Message},
		{"MessageId", e.MessageID},
		{"Subject", e.Subject},
		{"SubscribeURL", e.SubscribeURL},
		{"Timestamp", e.Timestamp},
		{"Token", e.Token},
		{"TopicArn", e.TopicARN},
		{"Type", e.Type},
	}
	var b strings.Builder
	for _, m := range members {
		if m.value != "" || m.name == "Message" {
			b.WriteString(m.name + "\n" + m.value + "\n")
		}
	}
	return b.String()
}

// JSON returns the envelope as it is sent.
func (e Envelope) JSON() ([]byte, error) { return plainJSON(e) }

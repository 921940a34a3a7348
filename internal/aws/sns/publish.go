package sns

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"howdah/api/sns"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/topic"
)

// maxMessage is SNS's limit of a message with its attributes, in bytes.
const maxMessage = 256 << 10

// publish takes a message. Once it has answered, the message is kept until it was delivered to all
// who want it.
func (s *service) publish(ctx context.Context, c front.Call, in *sns.PublishInput) (*sns.PublishResponse, error) {
	arn := in.TopicArn
	switch {
	case in.PhoneNumber != nil:
		return nil, badParameter("PhoneNumber Reason: SMS is not available here")
	case in.MessageDeduplicationId != nil || in.MessageGroupId != nil:
		return nil, badParameter("MessageGroupId and MessageDeduplicationId Reason: FIFO topics are not available")
	case arn == nil:
		arn = in.TargetArn
	case in.TargetArn != nil:
		return nil, badParameter("TopicArn and TargetArn cannot both be given")
	}
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	t, err := s.findTopic(c, arn)
	if err != nil {
		return nil, err
	}
	m, err := messageOf(in)
	if err != nil {
		return nil, err
	}
	m.Kind, m.ID, m.Scope, m.Topic, m.At = topic.Notification, c.ID, c.Scope, t.Value.Name, c.Now
	if err := s.mayWait(m); err != nil {
		return nil, err
	}
	if err := s.Commit(ctx, putMessage(m)); err != nil {
		return nil, err
	}
	return &sns.PublishResponse{MessageId: wire.Some(m.ID)}, nil
}

// messageOf checks what is published.
func messageOf(in *sns.PublishInput) (topic.Message, error) {
	text, size := wire.Or(in.Message, ""), 0
	m := topic.Message{Subject: wire.Or(in.Subject, ""), Body: []byte(text), Attributes: map[string]topic.Attribute{}}
	if text == "" {
		return m, badParameter("Message Reason: Empty message")
	}
	if !utf8.ValidString(text) {
		return m, badParameter("Message Reason: it must be UTF-8")
	}
	if in.Subject != nil && !validSubject(m.Subject) {
		return m, badParameter("Subject Reason: it must have 1 to 100 printable ASCII characters and not begin with a space")
	}
	for _, entry := range in.MessageAttributes {
		name := wire.Or(entry.Name, "")
		a, err := attributeOf(name, *entry.Value)
		if err != nil {
			return m, err
		}
		if _, twice := m.Attributes[name]; twice {
			return m, badParameter("MessageAttributes: the name %s is given twice", name)
		}
		m.Attributes[name] = a
		size += len(name) + len(a.Type) + len(a.Value)
	}
	if size += len(text); size > maxMessage {
		return m, badParameter("Message too long: with its attributes it must not be larger than %d bytes", maxMessage)
	}
	switch wire.Or(in.MessageStructure, "") {
	case "":
		return m, nil
	case "json":
		return m, structured(&m, text)
	}
	return m, badParameter("MessageStructure Reason: it must be json, not %q", *in.MessageStructure)
}

func validSubject(text string) bool {
	return text != "" && len(text) <= 100 && isASCII(text) && text[0] != ' '
}

// structured reads a message that has a text for each protocol.
func structured(m *topic.Message, text string) error {
	var texts map[string]any
	if err := json.Unmarshal([]byte(text), &texts); err != nil {
		return badParameter("Message Structure - JSON message body failed to parse")
	}
	fallback, ok := texts["default"].(string)
	if !ok {
		return badParameter("Message Structure - No default entry in JSON message body")
	}
	m.Body, m.Other = []byte(fallback), map[string][]byte{}
	for protocol, v := range texts {
		if one, ok := v.(string); ok && protocol != "default" {
			m.Other[protocol] = []byte(one)
		}
	}
	return nil
}

var (
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	attributeType = regexp.MustCompile(`^(String|Number|Binary|String\.Array)(\.[A-Za-z0-9_.-]+)?$`)
)

func attributeOf(name string, v sns.MessageAttributeValue) (topic.Attribute, error) {
	a := topic.Attribute{Type: wire.Or(v.DataType, "")}
	switch {
	case !attributeName.MatchString(name) || len(name) > 256 || strings.HasPrefix(strings.ToLower(name), "aws.") || strings.HasPrefix(strings.ToLower(name), "amazon."):
		return a, badAttribute("The name %q is not valid", name)
	case !attributeType.MatchString(a.Type) || len(a.Type) > 256:
		return a, badAttribute("In MessageAttributes, the message attribute %s has an invalid type %q: use String, String.Array, Number or Binary", name, a.Type)
	case strings.HasPrefix(a.Type, "Binary"):
		a.Value = wire.Or(v.BinaryValue, "")
		if _, err := base64.StdEncoding.DecodeString(a.Value); err != nil || a.Value == "" || v.StringValue != nil {
			return a, badAttribute("The message attribute %s must have a BinaryValue in base64, and no StringValue", name)
		}
		return a, nil
	}
	a.Value = wire.Or(v.StringValue, "")
	if a.Value == "" || v.BinaryValue != nil || !utf8.ValidString(a.Value) {
		return a, badAttribute("The message attribute %s must have a StringValue, and no BinaryValue", name)
	}
	if strings.HasPrefix(a.Type, "Number") && !isNumber(a.Value) {
		return a, badAttribute("The message attribute %s is no number", name)
	}
	var array []any
	if strings.HasPrefix(a.Type, "String.Array") && json.Unmarshal([]byte(a.Value), &array) != nil {
		return a, badAttribute("The message attribute %s is no JSON array", name)
	}
	return a, nil
}

func badAttribute(format string, args ...any) error {
	return wire.NewError(sns.ErrInvalidParameterValue, format, args...)
}

// isNumber reports whether a text is a number in JSON's form, because it is compared as such.
func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && json.Valid([]byte(text))
}

package sns

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"howdah/api/sns"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// pendingARN stands for the ARN of a subscription that is not confirmed yet.
const (
	pendingARN  = "PendingConfirmation"
	pendingWord = "pending confirmation"
)

// subscribe asks an endpoint whether it wants the messages of a topic. It sends nothing but that
// question until the endpoint has answered.
func (s *service) subscribe(ctx context.Context, c front.Call, in *sns.SubscribeInput) (*sns.SubscribeResponse, error) {
	protocol, endpoint := wire.Or(in.Protocol, ""), wire.Or(in.Endpoint, "")
	if err := s.checkEndpoint(protocol, endpoint); err != nil {
		return nil, err
	}
	attributes, err := subscriptionAttributes(protocol, nil, in.Attributes)
	if err != nil {
		return nil, err
	}
	var sub topic.Subscription
	err = s.Retry(ctx, func() error {
		t, err := s.findTopic(c, in.TopicArn)
		if err != nil {
			return err
		}
		sub = topic.Subscription{
			Scope: c.Scope, ID: front.RequestID(), Topic: t.Value.Name, Protocol: protocol, Endpoint: endpoint, Attributes: attributes,
		}
		known, asked := s.subscriptionOf(sub, c.Now)
		if asked {
			if !maps.Equal(known.Value.Attributes, attributes) {
				return badParameter("Attributes Reason: Subscription already exists with different attributes")
			}
			if sub = known.Value; sub.Confirmed {
				return nil
			}
		} else if err := errors.Join(s.mayAddSubscription(sub), s.mayFilter(sub)); err != nil {
			return err
		}
		sub.Token, sub.Asked = front.RequestID()+front.RequestID(), c.Now
		m := s.confirmation(c, topic.SubscriptionConfirmation, sub)
		if err := s.mayWait(m); err != nil {
			return err
		}
		return s.Commit(ctx, state.Unchanged(t.Key, t.Revision), state.Swap(subscriptionKey(sub), known.Revision, sub), putMessage(m))
	})
	if err != nil {
		return nil, err
	}
	if !sub.Confirmed && !wire.Or(in.ReturnSubscriptionArn, false) {
		return &sns.SubscribeResponse{SubscriptionArn: wire.Some(pendingWord)}, nil
	}
	return &sns.SubscribeResponse{SubscriptionArn: wire.Some(sub.ARN())}, nil
}

// subscriptionOf returns the subscription that a topic already has for an endpoint.
func (s *service) subscriptionOf(wanted topic.Subscription, now time.Time) (state.Record[topic.Subscription], bool) {
	for _, r := range s.subscriptions(wanted.Scope, wanted.Topic, now) {
		if r.Value.Protocol == wanted.Protocol && r.Value.Endpoint == wanted.Endpoint {
			return r, true
		}
	}
	return state.Record[topic.Subscription]{}, false
}

func subscriptionKey(s topic.Subscription) string {
	return state.Subscription(s.Account, s.Region, s.Topic, s.ID)
}

// confirmation returns the message that asks an endpoint whether it wants to receive a topic, or to
// receive it after all.
func (s *service) confirmation(c front.Call, kind string, sub topic.Subscription) topic.Message {
	text := "You have chosen to subscribe to the topic %s.\nTo confirm the subscription, visit the SubscribeURL included in this message."
	if kind == topic.UnsubscribeConfirmation {
		text = "You have chosen to deactivate subscription %s.\nTo cancel this operation and restore the subscription, visit the SubscribeURL included in this message."
	}
	subject := topic.ARN(sub.Scope, sub.Topic)
	if kind == topic.UnsubscribeConfirmation {
		subject = sub.ARN()
	}
	sub.Attributes = nil // they say nothing of a confirmation, and may be large
	return topic.Message{
		Kind: kind, ID: c.ID, Scope: sub.Scope, Topic: sub.Topic, Body: fmt.Appendf(nil, text, subject), At: c.Now, Only: &sub,
	}
}

func putMessage(m topic.Message) state.Op {
	return state.Put(state.Message(fmt.Sprintf("%016x-%s", m.At.UnixNano(), m.ID)), m)
}

// checkEndpoint refuses an endpoint that is neither an http or https URL nor an address for mail.
func (s *service) checkEndpoint(protocol, endpoint string) error {
	switch protocol {
	case topic.HTTP, topic.HTTPS:
		return checkURL(protocol, endpoint)
	case topic.Email, topic.EmailJSON:
		if !s.mails() {
			return badParameter("Protocol Reason: %s needs a relay for mail, and this home has none: start it with --smtp HOST:PORT --smtp-from ADDRESS", protocol)
		}
		parsed, err := mail.ParseAddress(endpoint)
		if err != nil || parsed.Address != endpoint || len(endpoint) > 320 || !isASCII(endpoint) {
			return badParameter("Endpoint Reason: Invalid email address %q", wire.HideURL(endpoint))
		}
		return nil
	case "sqs", "sms", "lambda", "application", "firehose":
		return badParameter("Protocol Reason: %s is not available here: use http, https, email or email-json", protocol)
	}
	return badParameter("Protocol Reason: %q does not exist: use http, https, email or email-json", protocol)
}

func checkURL(protocol, endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Hostname() == "" || len(endpoint) > 2048 || !isASCII(endpoint):
		return badParameter("Endpoint Reason: it must be a URL, not %q", wire.HideURL(endpoint))
	case !strings.EqualFold(u.Scheme, protocol):
		return badParameter("Endpoint must match the specified protocol: %q does not begin with %s://", wire.HideURL(endpoint), protocol)
	case u.Fragment != "":
		return badParameter("Endpoint Reason: the URL must have no fragment")
	}
	return nil
}

// isASCII reports whether a text has only printable characters, so that nothing else reaches a
// header.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// confirmSubscription takes the token that only the endpoint was told. It may be called again: a
// person may follow the link twice, and an answer may be lost.
func (s *service) confirmSubscription(ctx context.Context, c front.Call, in *sns.ConfirmSubscriptionInput) (*sns.ConfirmSubscriptionResponse, error) {
	if text := wire.Or(in.AuthenticateOnUnsubscribe, "false"); !strings.EqualFold(text, "true") && !strings.EqualFold(text, "false") {
		return nil, badParameter("AuthenticateOnUnsubscribe Reason: it must be true or false, not %q", text)
	}
	var sub topic.Subscription
	err := s.Retry(ctx, func() error {
		t, err := s.findTopic(c, in.TopicArn)
		if err != nil {
			return err
		}
		r, err := s.byToken(t.Value, wire.Or(in.Token, ""))
		if err != nil {
			return err
		}
		c.Sent(r.Value.Scope)
		if sub = r.Value; sub.Confirmed {
			return nil
		}
		if c.Now.Sub(sub.Asked) > topic.TokenLife {
			return badParameter("Token Reason: it is older than %d hours: subscribe again", int(topic.TokenLife.Hours()))
		}
		sub.Confirmed, sub.Ended, sub.Signed = true, false, !c.Anonymous
		sub.Authenticated = strings.EqualFold(wire.Or(in.AuthenticateOnUnsubscribe, ""), "true")
		return s.Commit(ctx, state.Unchanged(t.Key, t.Revision), state.Swap(r.Key, r.Revision, sub))
	})
	if err != nil {
		return nil, err
	}
	return &sns.ConfirmSubscriptionResponse{SubscriptionArn: wire.Some(sub.ARN())}, nil
}

func (s *service) byToken(t topic.Topic, token string) (state.Record[topic.Subscription], error) {
	for _, r := range state.LoadAll[topic.Subscription](s.Cache, state.SubscriptionPrefix(t.Account, t.Region, t.Name)) {
		if r.Value.Token != "" && subtle.ConstantTimeCompare([]byte(r.Value.Token), []byte(token)) == 1 {
			return r, nil
		}
	}
	return state.Record[topic.Subscription]{}, badParameter("Token Reason: no subscription of the topic has it")
}

// unsubscribe ends a subscription. If that is done by the link of a message, it tells the endpoint,
// which may take it back.
func (s *service) unsubscribe(ctx context.Context, c front.Call, in *sns.UnsubscribeInput) (*front.Void, error) {
	return nil, s.Retry(ctx, func() error {
		r, err := s.findSubscription(c, in.SubscriptionArn)
		if isNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		sub := r.Value
		c.Sent(sub.Scope)
		if !sub.Confirmed {
			return badParameter("SubscriptionArn Reason: the subscription is not confirmed: it ends by itself if nobody does")
		}
		if c.Anonymous && sub.Authenticated {
			return wire.NewError(sns.ErrAuthorizationError, "Only a signed call may end the subscription %s.", sub.ARN())
		}
		if !c.Anonymous {
			return s.Commit(ctx, append([]state.Op{state.Remove(r.Key, r.Revision)}, s.countDeleted(sub)...)...)
		}
		sub.Confirmed, sub.Ended, sub.Token, sub.Asked = false, true, front.RequestID()+front.RequestID(), c.Now
		m := s.confirmation(c, topic.UnsubscribeConfirmation, sub)
		if err := s.mayWait(m); err != nil {
			return err
		}
		return s.Commit(ctx, append(s.countDeleted(sub), state.Swap(r.Key, r.Revision, sub), putMessage(m))...)
	})
}

// countDeleted counts a subscription that ends.
func (s *service) countDeleted(sub topic.Subscription) []state.Op {
	t, err := state.Load[topic.Topic](s.Cache, state.Topic(sub.Account, sub.Region, sub.Topic))
	if err != nil {
		return nil
	}
	t.Value.Deleted++
	return []state.Op{state.Swap(t.Key, t.Revision, t.Value)}
}

// isNotFound reports whether a topic or subscription is not there.
func isNotFound(err error) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && e.Code == sns.ErrNotFound
}

// resourceGone returns the error by which the actions on tags say that a topic is not there.
func resourceGone(err error) error {
	if isNotFound(err) {
		return wire.NewError(sns.ErrResourceNotFound, "Resource does not exist")
	}
	return err
}

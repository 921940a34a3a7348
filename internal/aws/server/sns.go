package server

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"howdah/api"
	"howdah/api/sns"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// snsActions are what Howdah does of SNS.
var snsActions = map[string]action{
	"ConfirmSubscription":       onSNS((*Server).confirmSubscription),
	"CreateTopic":               onSNS((*Server).createTopic),
	"DeleteTopic":               onSNS((*Server).deleteTopic),
	"GetSubscriptionAttributes": onSNS((*Server).getSubscriptionAttributes),
	"GetTopicAttributes":        onSNS((*Server).getTopicAttributes),
	"ListSubscriptions":         onSNS((*Server).listSubscriptions),
	"ListSubscriptionsByTopic":  onSNS((*Server).listSubscriptionsByTopic),
	"ListTagsForResource":       onSNS((*Server).listTopicTags),
	"ListTopics":                onSNS((*Server).listTopics),
	"Publish":                   onSNS((*Server).publish),
	"SetSubscriptionAttributes": onSNS((*Server).setSubscriptionAttributes),
	"SetTopicAttributes":        onSNS((*Server).setTopicAttributes),
	"Subscribe":                 onSNS((*Server).subscribe),
	"TagResource":               onSNS((*Server).tagTopic),
	"Unsubscribe":               onSNS((*Server).unsubscribe),
	"UntagResource":             onSNS((*Server).untagTopic),
}

// onSNS makes an action of a handler, and has it answer the codes of SNS: that
// service calls InvalidParameter what RDS has several codes for.
func onSNS[In, Out any](handler func(*Server, context.Context, call, *In) (*Out, error)) action {
	do := on(handler)
	return func(ctx context.Context, s *Server, c call, values url.Values) (any, error) {
		out, err := do(ctx, s, c, values)
		return out, snsError(err)
	}
}

func snsError(err error) error {
	var known *wire.Error
	if !errors.As(err, &known) {
		if known = translate(err); known == nil {
			return err
		}
	}
	if slices.Contains([]string{api.ErrMissingParameter, api.ErrInvalidParameterValue, api.ErrInvalidParameterCombination}, known.Code) {
		return badParameter("%s", known.Message)
	}
	return known
}

func badParameter(format string, args ...any) error {
	e := wire.NewError(sns.ErrInvalidParameter, format, args...)
	e.Message = "Invalid parameter: " + e.Message
	return e
}

// anonymous are the actions that endpoints call by the links of messages: what
// stands for a signature is the token, or the subscription's id, that only its
// endpoint was told.
var anonymous = []string{"ConfirmSubscription", "Unsubscribe"}

// withoutSignature is a call by a link of a message. It is in the scope of the
// topic that the link names.
func (s *Server) withoutSignature(name string, values url.Values) (call, bool) {
	if !slices.Contains(anonymous, name) {
		return call{}, false
	}
	scope, _, ok := topic.ParseARN(values.Get("TopicArn"))
	if !ok {
		scope, _, _, ok = topic.ParseSubscriptionARN(values.Get("SubscriptionArn"))
	}
	return call{Scope: scope, anonymous: true}, ok
}

// findTopic finds a topic of the caller's account and region by its ARN.
func (s *Server) findTopic(c call, arn *string) (state.Record[topic.Topic], error) {
	var none state.Record[topic.Topic]
	scope, name, ok := topic.ParseARN(or(arn, ""))
	if !ok {
		return none, badParameter("TopicArn Reason: An ARN of a topic must have 6 elements, not as in %q: give one as TopicArn, or ResourceArn for tags", or(arn, ""))
	}
	if scope.Account != c.Account {
		return none, wire.NewError(sns.ErrAuthorizationError, "The topic %s is of another account.", *arn)
	}
	if scope != c.Scope {
		return none, badParameter("TopicArn Reason: the topic of the TopicArn, or ResourceArn, is in the region %s, the call in %s", scope.Region, c.Region)
	}
	r, err := state.Load[topic.Topic](s.Cache, state.Topic(scope.Account, scope.Region, name))
	if err != nil {
		return none, wire.NewError(sns.ErrNotFound, "Topic does not exist")
	}
	return r, nil
}

// findSubscription finds a subscription of the caller's account and region.
func (s *Server) findSubscription(c call, arn *string) (state.Record[topic.Subscription], error) {
	var none state.Record[topic.Subscription]
	scope, name, id, ok := topic.ParseSubscriptionARN(or(arn, ""))
	if !ok {
		return none, badParameter("SubscriptionArn Reason: An ARN of a subscription must have 7 elements, not as in %q", or(arn, ""))
	}
	if scope.Account != c.Account {
		return none, wire.NewError(sns.ErrAuthorizationError, "The subscription %s is of another account.", *arn)
	}
	if scope != c.Scope {
		return none, badParameter("SubscriptionArn Reason: the subscription is in the region %s, the call in %s", scope.Region, c.Region)
	}
	r, err := state.Load[topic.Subscription](s.Cache, state.Subscription(scope.Account, scope.Region, name, id))
	if err != nil || r.Value.Ended {
		return none, wire.NewError(sns.ErrNotFound, "Subscription does not exist")
	}
	return r, nil
}

// subscriptions are those of a topic that count; of all topics for "".
func (s *Server) subscriptions(scope spec.Scope, name string) []state.Record[topic.Subscription] {
	prefix := state.SubscriptionPrefix(scope.Account, scope.Region, name)
	if name == "" {
		prefix = state.SubscriptionRoot + scope.Account + "/" + scope.Region + "/"
	}
	all := state.LoadAll[topic.Subscription](s.Cache, prefix)
	return slices.DeleteFunc(all, func(r state.Record[topic.Subscription]) bool { return r.Value.Ended || r.Value.Expired(s.now()) })
}

func snsTagsIn(in []sns.Tag) []spec.Tag {
	tags := make([]spec.Tag, len(in))
	for i, t := range in {
		tags[i] = spec.Tag{Key: or(t.Key, ""), Value: or(t.Value, "")}
	}
	return tags
}

func snsTagsOut(in []spec.Tag) []sns.Tag {
	tags := make([]sns.Tag, len(in))
	for i, t := range in {
		tags[i] = sns.Tag{Key: some(t.Key), Value: some(t.Value)}
	}
	return tags
}

// checkTopicTags: tags that are settings of databases are none of topics.
func checkTopicTags(tags []spec.Tag) error {
	if len(tags) > 50 {
		return wire.NewError(sns.ErrTagLimitExceeded, "A topic can have at most 50 tags, not %d.", len(tags))
	}
	return spec.CheckTags(tags)
}

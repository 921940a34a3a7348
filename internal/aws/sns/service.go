// Package sns is the part of SNS that notifications need: topics, their subscriptions, and messages
// that are published to them. It records what is to be delivered, and package notify delivers it.
package sns

import (
	"net/url"
	"slices"
	"time"

	"howdah/api"
	"howdah/api/sns"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// Config is what the service needs. All fields are required.
type Config struct {
	State *state.Client
	// Mails reports whether the home has a relay for mail.
	Mails func() bool
}

// service has the handlers.
type service struct {
	*state.Client
	mails func() bool
}

// Service returns what package front needs to know of it.
func Service(cfg Config) *front.Service {
	s := &service{cfg.State, cfg.Mails}
	return &front.Service{
		Name: sns.Service.Name, Contract: &sns.Service, Unsigned: withoutSignature, Errors: ownCode,
		Resources: resources, Context: requestTags, Describe: s.describe,
		LongTexts: map[string]int{"Message": 1 << 20, "AttributeValue": 1 << 20}, // their actions bound them
		Blank:     []string{"Message"},
		Actions: map[string]front.Action{
			"ConfirmSubscription":       front.On(s.confirmSubscription),
			"CreateTopic":               front.On(s.createTopic),
			"DeleteTopic":               front.On(s.deleteTopic),
			"GetSubscriptionAttributes": front.On(s.getSubscriptionAttributes),
			"GetTopicAttributes":        front.On(s.getTopicAttributes),
			"ListSubscriptions":         front.On(s.listSubscriptions),
			"ListSubscriptionsByTopic":  front.On(s.listSubscriptionsByTopic),
			"ListTagsForResource":       front.On(s.listTopicTags),
			"ListTopics":                front.On(s.listTopics),
			"Publish":                   front.On(s.publish),
			"SetSubscriptionAttributes": front.On(s.setSubscriptionAttributes),
			"SetTopicAttributes":        front.On(s.setTopicAttributes),
			"Subscribe":                 front.On(s.subscribe),
			"TagResource":               front.On(s.tagTopic),
			"Unsubscribe":               front.On(s.unsubscribe),
			"UntagResource":             front.On(s.untagTopic),
		},
	}
}

// ownCode gives errors the codes of SNS. SNS says InvalidParameter where RDS has several codes.
func ownCode(known *wire.Error) *wire.Error {
	if slices.Contains([]string{api.ErrMissingParameter, api.ErrInvalidParameterValue, api.ErrInvalidParameterCombination}, known.Code) {
		return badParameter("%s", known.Message)
	}
	return known
}

func badParameter(format string, args ...any) *wire.Error {
	e := wire.NewError(sns.ErrInvalidParameter, format, args...)
	e.Message = "Invalid parameter: " + e.Message
	return e
}

// anonymous has the actions that endpoints call by the links of messages. The token, or the
// subscription's id, stands for a signature: only the endpoint was told it.
var anonymous = []string{"ConfirmSubscription", "Unsubscribe"}

// withoutSignature returns the scope of a call by a link of a message: that of the topic which the
// link names.
func withoutSignature(action string, values url.Values) (spec.Scope, bool) {
	if !slices.Contains(anonymous, action) {
		return spec.Scope{}, false
	}
	scope, _, ok := topic.ParseARN(values.Get("TopicArn"))
	if !ok {
		scope, _, _, ok = topic.ParseSubscriptionARN(values.Get("SubscriptionArn"))
	}
	return scope, ok
}

// findTopic finds a topic of the caller's account and region by its ARN.
func (s *service) findTopic(c front.Call, arn *string) (state.Record[topic.Topic], error) {
	var none state.Record[topic.Topic]
	scope, name, ok := topic.ParseARN(wire.Or(arn, ""))
	if !ok {
		return none, badParameter("TopicArn Reason: An ARN of a topic must have 6 elements, not as in %q: give one as TopicArn, or ResourceArn for tags", wire.Or(arn, ""))
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
func (s *service) findSubscription(c front.Call, arn *string) (state.Record[topic.Subscription], error) {
	var none state.Record[topic.Subscription]
	scope, name, id, ok := topic.ParseSubscriptionARN(wire.Or(arn, ""))
	if !ok {
		return none, badParameter("SubscriptionArn Reason: An ARN of a subscription must have 7 elements, not as in %q", wire.Or(arn, ""))
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

// subscriptions returns the subscriptions of a topic that count now, or of all topics for "".
func (s *service) subscriptions(scope spec.Scope, name string, now time.Time) []state.Record[topic.Subscription] {
	prefix := state.SubscriptionPrefix(scope.Account, scope.Region, name)
	if name == "" {
		prefix = state.SubscriptionRoot + scope.Account + "/" + scope.Region + "/"
	}
	all := state.LoadAll[topic.Subscription](s.Cache, prefix)
	return slices.DeleteFunc(all, func(r state.Record[topic.Subscription]) bool { return r.Value.Ended || r.Value.Expired(now) })
}

func tagsIn(in []sns.Tag) []spec.Tag {
	tags := make([]spec.Tag, len(in))
	for i, t := range in {
		tags[i] = spec.Tag{Key: wire.Or(t.Key, ""), Value: wire.Or(t.Value, "")}
	}
	return tags
}

func tagsOut(in []spec.Tag) []sns.Tag {
	tags := make([]sns.Tag, len(in))
	for i, t := range in {
		tags[i] = sns.Tag{Key: wire.Some(t.Key), Value: wire.Some(t.Value)}
	}
	return tags
}

// checkTopicTags refuses tags that are settings of databases. Topics have no such tags.
func checkTopicTags(tags []spec.Tag) error {
	if len(tags) > 50 {
		return wire.NewError(sns.ErrTagLimitExceeded, "A topic can have at most 50 tags, not %d.", len(tags))
	}
	return spec.CheckTags(tags)
}

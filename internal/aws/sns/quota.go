package sns

import (
	"howdah/api"
	"howdah/api/sns"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// These are quotas of notifications. Those of an account hold over all regions together: a region
// is only a name here, and anybody may make up another one. Calls at the same moment may exceed a
// quota by their number.
const (
	maxTopics             = 1000
	maxSubscriptions      = 5000
	maxTopicSubscriptions = 1000
	maxTopicFilters       = 200
	maxFilterBytes        = 4 << 20 // of an account's filter policies together
	maxTopicPolicy        = 30 << 10
	// maxWaiting and maxWaitingBytes bound the messages of an account that wait to be queued. They
	// wait only while no control plane leads, or while it cannot keep up.
	maxWaiting      = 1000
	maxWaitingBytes = 32 << 20
)

// mayAddTopic refuses one topic too many.
func (s *service) mayAddTopic(c front.Call) error {
	if len(s.Cache.Keys(state.TopicRoot+c.Account+"/")) >= maxTopics {
		return wire.NewError(sns.ErrTopicLimitExceeded, "An account can have at most %d topics: delete one first.", maxTopics)
	}
	return nil
}

// mayAddSubscription refuses one subscription too many. Subscriptions that wait to be confirmed
// count, because they are kept.
func (s *service) mayAddSubscription(sub topic.Subscription) error {
	if len(s.Cache.Keys(state.SubscriptionPrefix(sub.Account, sub.Region, sub.Topic))) >= maxTopicSubscriptions {
		return wire.NewError(sns.ErrSubscriptionLimitExceeded, "A topic can have at most %d subscriptions, with those that are not confirmed yet.", maxTopicSubscriptions)
	}
	if len(s.Cache.Keys(state.SubscriptionRoot+sub.Account+"/")) >= maxSubscriptions {
		return wire.NewError(sns.ErrSubscriptionLimitExceeded, "An account can have at most %d subscriptions, with those that are not confirmed yet.", maxSubscriptions)
	}
	return nil
}

// mayFilter refuses the filter policy of a subscription if there are too many others.
func (s *service) mayFilter(sub topic.Subscription) error {
	bytes := len(sub.Attributes[topic.FilterPolicy])
	if bytes == 0 {
		return nil
	}
	ofTopic := 0
	for _, r := range state.LoadAll[topic.Subscription](s.Cache, state.SubscriptionRoot+sub.Account+"/") {
		other := r.Value
		policy := other.Attributes[topic.FilterPolicy]
		if policy == "" || r.Key == subscriptionKey(sub) {
			continue
		}
		bytes += len(policy)
		if other.Scope == sub.Scope && other.Topic == sub.Topic {
			ofTopic++
		}
	}
	switch {
	case ofTopic >= maxTopicFilters:
		return wire.NewError(sns.ErrFilterPolicyLimitExceeded, "At most %d subscriptions of a topic can have a filter policy.", maxTopicFilters)
	case bytes > maxFilterBytes:
		return wire.NewError(sns.ErrFilterPolicyLimitExceeded, "The filter policies of an account can have at most %d bytes together.", maxFilterBytes)
	}
	return nil
}

// mayWait refuses a message while too many of its account wait. The publisher can try again, and a
// message that was accepted is never dropped for it.
func (s *service) mayWait(m topic.Message) error {
	number, bytes := 0, m.Size()
	for _, r := range state.LoadAll[topic.Message](s.Cache, state.MessageRoot) {
		if r.Value.Account == m.Account {
			number, bytes = number+1, bytes+r.Value.Size()
		}
	}
	if number >= maxWaiting || bytes > maxWaitingBytes {
		return wire.NewError(api.ErrThrottled, "Too many messages of the account wait for delivery: see `howdah status`, and try again.")
	}
	return nil
}

package sns

import (
	"context"
	"maps"
	"strconv"

	"howdah/api/sns"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/wire"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// listSubscriptions lists the subscriptions of all topics of the caller's account and region.
func (s *service) listSubscriptions(ctx context.Context, c front.Call, in *sns.ListSubscriptionsInput) (*sns.ListSubscriptionsResponse, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	all, next, err := subscriptionPage(s.subscriptions(c.Scope, "", c.Now), in.NextToken)
	if err != nil {
		return nil, err
	}
	return &sns.ListSubscriptionsResponse{Subscriptions: all, NextToken: next}, nil
}

// listSubscriptionsByTopic lists the subscriptions of one topic.
func (s *service) listSubscriptionsByTopic(ctx context.Context, c front.Call, in *sns.ListSubscriptionsByTopicInput) (*sns.ListSubscriptionsByTopicResponse, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	t, err := s.findTopic(c, in.TopicArn)
	if err != nil {
		return nil, err
	}
	all, next, err := subscriptionPage(s.subscriptions(c.Scope, t.Value.Name, c.Now), in.NextToken)
	if err != nil {
		return nil, err
	}
	return &sns.ListSubscriptionsByTopicResponse{Subscriptions: all, NextToken: next}, nil
}

func subscriptionPage(all []state.Record[topic.Subscription], token *string) ([]sns.Subscription, *string, error) {
	chosen, next, err := page.Of(all, func(r state.Record[topic.Subscription]) string { return r.Key }, nil, token)
	if err != nil {
		return nil, nil, err
	}
	out := []sns.Subscription{}
	for _, r := range chosen {
		arn := pendingARN
		if r.Value.Confirmed {
			arn = r.Value.ARN()
		}
		out = append(out, sns.Subscription{
			SubscriptionArn: wire.Some(arn), Owner: wire.Some(r.Value.Account), Protocol: wire.Some(r.Value.Protocol),
			Endpoint: wire.Some(wire.MaskURL(r.Value.Endpoint)), TopicArn: wire.Some(topic.ARN(r.Value.Scope, r.Value.Topic)),
		})
	}
	return out, next, nil
}

// getSubscriptionAttributes shows a subscription.
func (s *service) getSubscriptionAttributes(ctx context.Context, c front.Call, in *sns.GetSubscriptionAttributesInput) (*sns.GetSubscriptionAttributesResponse, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	r, err := s.findSubscription(c, in.SubscriptionArn)
	if err != nil {
		return nil, err
	}
	sub := r.Value
	attributes := map[string]string{
		"SubscriptionArn": sub.ARN(), "TopicArn": topic.ARN(sub.Scope, sub.Topic), "Owner": sub.Account, "Protocol": sub.Protocol,
		"Endpoint": wire.MaskURL(sub.Endpoint), "PendingConfirmation": strconv.FormatBool(!sub.Confirmed),
		"ConfirmationWasAuthenticated": strconv.FormatBool(sub.Signed), topic.RawMessageDelivery: "false",
		"SubscriptionPrincipal": "arn:aws:iam::" + sub.Account + ":root",
	}
	if sub.Attributes[topic.FilterPolicy] != "" {
		attributes[topic.FilterPolicyScope] = topic.ScopeAttributes
	}
	if lost, err := state.Load[topic.GivenUp](s.Cache, state.GivenUp(state.Tail(r.Key, state.SubscriptionRoot))); err == nil {
		attributes[topic.GivenUpAttribute] = strconv.FormatInt(lost.Value.Messages, 10)
	}
	maps.Copy(attributes, sub.Attributes)
	return &sns.GetSubscriptionAttributesResponse{Attributes: attributes}, nil
}

// setSubscriptionAttributes sets one attribute. Without a value it removes the attribute. It counts
// for messages that are published from now on.
func (s *service) setSubscriptionAttributes(ctx context.Context, c front.Call, in *sns.SetSubscriptionAttributesInput) (*front.Void, error) {
	return nil, s.Retry(ctx, func() error {
		r, err := s.findSubscription(c, in.SubscriptionArn)
		if err != nil {
			return err
		}
		change := map[string]string{wire.Or(in.AttributeName, ""): wire.Or(in.AttributeValue, "")}
		if r.Value.Attributes, err = subscriptionAttributes(r.Value.Protocol, r.Value.Attributes, change); err != nil {
			return err
		}
		if err := s.mayFilter(r.Value); err != nil {
			return err
		}
		return s.Commit(ctx, state.Swap(r.Key, r.Revision, r.Value))
	})
}

// subscriptionAttributes returns attributes with some changed, all of them checked.
func subscriptionAttributes(protocol string, have, change map[string]string) (map[string]string, error) {
	all := map[string]string{}
	maps.Copy(all, have)
	for name, value := range change {
		if err := checkSubscriptionAttribute(protocol, name, value); err != nil {
			return nil, err
		}
		all[name] = value
		if value == "" || name == topic.FilterPolicy && value == "{}" {
			delete(all, name)
		}
	}
	if policy := all[topic.FilterPolicy]; policy != "" {
		if _, err := topic.ParseFilter(policy, all[topic.FilterPolicyScope] == topic.ScopeBody); err != nil {
			return nil, badParameter("FilterPolicy: %s", err)
		}
	}
	return all, nil
}

func checkSubscriptionAttribute(protocol, name, value string) error {
	switch name {
	case topic.FilterPolicy:
		return nil // checked together with its scope
	case topic.FilterPolicyScope:
		if value != topic.ScopeAttributes && value != topic.ScopeBody {
			return badParameter("FilterPolicyScope: it must be %s or %s, not %q", topic.ScopeAttributes, topic.ScopeBody, value)
		}
	case topic.RawMessageDelivery:
		if value != "true" && value != "false" {
			return badParameter("AttributeValue Reason: RawMessageDelivery must be true or false, not %q", value)
		}
		if value == "true" && protocol != topic.HTTP && protocol != topic.HTTPS {
			return badParameter("RawMessageDelivery: it is not available for the protocol %s", protocol)
		}
	default:
		if value == "" && (name == "DeliveryPolicy" || name == "RedrivePolicy") {
			return nil
		}
		return badParameter("AttributeName Reason: the attribute %q of subscriptions is not available", name)
	}
	return nil
}

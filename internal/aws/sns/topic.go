package sns

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"howdah/api/sns"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// createTopic makes a topic. If a topic of that name is as wanted, it returns that one.
func (s *service) createTopic(ctx context.Context, c front.Call, in *sns.CreateTopicInput) (*sns.CreateTopicResponse, error) {
	name := wire.Or(in.Name, "")
	if strings.HasSuffix(name, ".fifo") {
		return nil, badParameter("Name Reason: FIFO topics are not available: take a name that does not end in .fifo")
	}
	if !topic.GoodName(name) {
		return nil, badParameter("Topic Name %q: it must have 1 to 256 letters, digits, - or _", name)
	}
	if in.DataProtectionPolicy != nil {
		return nil, badParameter("DataProtectionPolicy Reason: it is not available")
	}
	for key, value := range in.Attributes {
		if err := checkTopicAttribute(key, value); err != nil {
			return nil, err
		}
	}
	tags := tagsIn(in.Tags)
	if err := checkTopicTags(tags); err != nil {
		return nil, err
	}
	wanted := topic.Topic{Scope: c.Scope, Name: name, Attributes: in.Attributes, Tags: tags, Created: c.Now}
	err := s.Retry(ctx, func() error {
		key := state.Topic(c.Account, c.Region, name)
		known, err := state.Load[topic.Topic](s.Cache, key)
		if errors.Is(err, state.ErrNotFound) {
			if err := s.mayAddTopic(c); err != nil {
				return err
			}
			return s.Commit(ctx, state.Swap(key, 0, wanted))
		}
		if err != nil {
			return err
		}
		return sameTopic(known.Value, wanted)
	})
	if err != nil {
		return nil, err
	}
	return &sns.CreateTopicResponse{TopicArn: wire.Some(wanted.ARN())}, nil
}

func sameTopic(known, wanted topic.Topic) error {
	for key, value := range wanted.Attributes {
		if known.Attributes[key] != value {
			return badParameter("Attributes Reason: Topic already exists with different attributes")
		}
	}
	for _, t := range wanted.Tags {
		if !slices.Contains(known.Tags, t) {
			return badParameter("Tags Reason: Topic already exists with different tags")
		}
	}
	return nil
}

// checkTopicAttribute checks an attribute that users set. It refuses what would silently have no
// effect. A policy is kept and shown, and has no effect: topics belong to one account, whose keys
// may publish, and so may RDS.
func checkTopicAttribute(name, value string) error {
	switch name {
	case "DisplayName":
		if len(value) > 100 || strings.ContainsAny(value, "\r\n") {
			return badParameter("DisplayName Reason: it must have at most 100 characters, on one line")
		}
	case "SignatureVersion":
		if value != "1" && value != "2" {
			return badParameter("SignatureVersion Reason: it must be 1 or 2, not %q", value)
		}
	case "Policy":
		if value != "" && !json.Valid([]byte(value)) {
			return badParameter("Policy Error: it must be JSON")
		}
		if len(value) > maxTopicPolicy {
			return badParameter("Policy Error: it must have at most %d bytes", maxTopicPolicy)
		}
	case "TracingConfig":
		if value != "PassThrough" {
			return badParameter("TracingConfig Reason: only PassThrough is available")
		}
	case "FifoTopic", "ContentBasedDeduplication":
		if value != "false" {
			return badParameter("%s Reason: FIFO topics are not available", name)
		}
	default:
		if value == "" && slices.Contains(emptyAttributes, name) {
			return nil
		}
		return badParameter("AttributeName Reason: the attribute %s of topics is not available", name)
	}
	return nil
}

// emptyAttributes has attributes that are empty and may be set to nothing. Infrastructure code does
// that.
var emptyAttributes = []string{"KmsMasterKeyId", "DeliveryPolicy", "ArchivePolicy"}

// deleteTopic deletes a topic with its subscriptions. It is no error if the topic is gone.
func (s *service) deleteTopic(ctx context.Context, c front.Call, in *sns.DeleteTopicInput) (*front.Void, error) {
	return nil, s.Retry(ctx, func() error {
		t, err := s.findTopic(c, in.TopicArn)
		if isNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		v := t.Value
		return s.Commit(ctx, state.Remove(t.Key, t.Revision), state.DeletePrefix(state.SubscriptionPrefix(v.Account, v.Region, v.Name)))
	})
}

// listTopics lists the topics of the caller's account and region.
func (s *service) listTopics(ctx context.Context, c front.Call, in *sns.ListTopicsInput) (*sns.ListTopicsResponse, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	all := state.LoadAll[topic.Topic](s.Cache, state.Topic(c.Account, c.Region, ""))
	chosen, next, err := page.Of(all, func(r state.Record[topic.Topic]) string { return r.Key }, nil, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &sns.ListTopicsResponse{Topics: []sns.Topic{}, NextToken: next}
	for _, t := range chosen {
		out.Topics = append(out.Topics, sns.Topic{TopicArn: wire.Some(t.Value.ARN())})
	}
	return out, nil
}

// getTopicAttributes shows a topic.
func (s *service) getTopicAttributes(ctx context.Context, c front.Call, in *sns.GetTopicAttributesInput) (*sns.GetTopicAttributesResponse, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	t, err := s.findTopic(c, in.TopicArn)
	if err != nil {
		return nil, err
	}
	arn, confirmed, pending := t.Value.ARN(), 0, 0
	for _, r := range s.subscriptions(t.Value.Scope, t.Value.Name, c.Now) {
		if r.Value.Confirmed {
			confirmed++
		} else {
			pending++
		}
	}
	attributes := map[string]string{
		"TopicArn": arn, "Owner": c.Account, "DisplayName": "", "Policy": defaultPolicy(arn, c.Account),
		"SubscriptionsConfirmed": strconv.Itoa(confirmed), "SubscriptionsPending": strconv.Itoa(pending),
		"SubscriptionsDeleted": strconv.Itoa(t.Value.Deleted),
	}
	maps.Copy(attributes, t.Value.Attributes)
	return &sns.GetTopicAttributesResponse{Attributes: attributes}, nil
}

// defaultPolicy says who may publish to a topic: all keys of its account, and RDS.
func defaultPolicy(arn, account string) string {
	return `{"Version":"2012-10-17","Id":"__default_policy_ID","Statement":[` +
		`{"Sid":"__default_statement_ID","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:root"},"Action":"sns:*","Resource":"` + arn + `"},` +
		`{"Sid":"events","Effect":"Allow","Principal":{"Service":"events.rds.amazonaws.com"},"Action":"sns:Publish","Resource":"` + arn + `"}]}`
}

// setTopicAttributes sets one attribute. An empty value removes it.
func (s *service) setTopicAttributes(ctx context.Context, c front.Call, in *sns.SetTopicAttributesInput) (*front.Void, error) {
	name, value := wire.Or(in.AttributeName, ""), wire.Or(in.AttributeValue, "")
	if err := checkTopicAttribute(name, value); err != nil {
		return nil, err
	}
	if name == "FifoTopic" || name == "ContentBasedDeduplication" {
		return nil, badParameter("AttributeName Reason: %s cannot be changed", name)
	}
	return nil, s.changeTopic(ctx, c, in.TopicArn, func(t *topic.Topic) error {
		t.Attributes = maps.Clone(t.Attributes)
		if t.Attributes == nil {
			t.Attributes = map[string]string{}
		}
		t.Attributes[name] = value
		if value == "" {
			delete(t.Attributes, name)
		}
		return nil
	})
}

// changeTopic changes a topic's record.
func (s *service) changeTopic(ctx context.Context, c front.Call, arn *string, change func(*topic.Topic) error) error {
	return s.Retry(ctx, func() error {
		t, err := s.findTopic(c, arn)
		if err != nil {
			return err
		}
		if err := change(&t.Value); err != nil {
			return err
		}
		return s.Commit(ctx, state.Swap(t.Key, t.Revision, t.Value))
	})
}

// tagTopic adds tags to a topic, or changes their values.
func (s *service) tagTopic(ctx context.Context, c front.Call, in *sns.TagResourceRequest) (*sns.TagResourceResponse, error) {
	err := s.changeTopic(ctx, c, in.ResourceArn, func(t *topic.Topic) error {
		if err := checkTopicTags(tagsIn(in.Tags)); err != nil {
			return err
		}
		t.Tags = spec.MergeTags(t.Tags, tagsIn(in.Tags))
		return checkTopicTags(t.Tags)
	})
	return &sns.TagResourceResponse{}, resourceGone(err)
}

// untagTopic removes tags by their keys.
func (s *service) untagTopic(ctx context.Context, c front.Call, in *sns.UntagResourceRequest) (*sns.UntagResourceResponse, error) {
	err := s.changeTopic(ctx, c, in.ResourceArn, func(t *topic.Topic) error {
		t.Tags = spec.RemoveTags(t.Tags, in.TagKeys)
		return nil
	})
	return &sns.UntagResourceResponse{}, resourceGone(err)
}

// listTopicTags shows the tags of a topic.
func (s *service) listTopicTags(ctx context.Context, c front.Call, in *sns.ListTagsForResourceRequest) (*sns.ListTagsForResourceResponse, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	t, err := s.findTopic(c, in.ResourceArn)
	if err != nil {
		return nil, resourceGone(err)
	}
	return &sns.ListTagsForResourceResponse{Tags: tagsOut(t.Value.Tags)}, nil
}

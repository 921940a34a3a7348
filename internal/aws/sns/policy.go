package sns

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"howdah/api/sns"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// arnParameters name a topic or a subscription by its ARN.
var arnParameters = []string{"ResourceArn", "TopicArn", "TargetArn", "SubscriptionArn"}

// resources returns the ARNs of the topics that a request names, also of one that it makes.
func resources(c front.Call, in any) []string {
	var found []string
	front.Each(in, func(name string, value reflect.Value) {
		text, ok := value.Interface().(*string)
		switch {
		case !ok || strings.TrimSpace(*text) == "":
		case name == "Name" && c.Action == "sns:CreateTopic":
			found = append(found, topic.ARN(c.Scope, *text))
		case slices.Contains(arnParameters, name):
			found = append(found, plainARN(*text))
		}
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// plainARN returns an ARN as policies write it. Handlers do not look at the partition. A
// subscription counts as its topic, because policies name no other resources of SNS.
func plainARN(arn string) string {
	if scope, name, ok := topic.ParseARN(arn); ok {
		return topic.ARN(scope, name)
	}
	if scope, name, _, ok := topic.ParseSubscriptionARN(arn); ok {
		return topic.ARN(scope, name)
	}
	return strings.TrimSpace(arn)
}

// requestTags adds the tags that a request gives.
func requestTags(_ front.Call, in any, all map[string][]string) {
	front.Each(in, func(_ string, value reflect.Value) {
		tags, _ := value.Interface().([]sns.Tag)
		for _, t := range tags {
			front.RequestTag(all, wire.Or(t.Key, ""), wire.Or(t.Value, ""))
		}
	})
}

// describe adds the tags of a topic. ok is false if nobody can tell them.
func (s *service) describe(all map[string][]string, scope spec.Scope, arn string) (ok bool) {
	in, name, ok := topic.ParseARN(arn)
	if !ok || in != scope {
		return false
	}
	r, err := state.Load[topic.Topic](s.Cache, state.Topic(in.Account, in.Region, name))
	front.ResourceTags(all, r.Value.Tags)
	return err == nil || errors.Is(err, state.ErrNotFound)
}

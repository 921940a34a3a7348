package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"howdah/internal/aws/rds/look"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// The quotas of notifications, as docs/guide has them.
const (
	maxTopics             = 1000
	maxSubscriptions      = 5000
	maxTopicSubscriptions = 1000
	maxTopicFilters       = 200
	maxFilterBytes        = 4 << 20
	maxTopicPolicy        = 30 << 10
	maxWaiting            = 1000
	maxWaitingBytes       = 32 << 20
)

// putMany puts many records at once.
func (u *user) putMany(number int, op func(n int) state.Op) {
	u.Helper()
	var ops []state.Op
	for n := range number {
		if ops = append(ops, op(n)); len(ops) == 100 || n == number-1 {
			u.put(ops...)
			ops = nil
		}
	}
}

// elsewhere is a region that nobody else uses: quotas hold over all regions.
func (u *user) elsewhere() spec.Scope { return spec.Scope{Account: u.account, Region: "eu-north-9"} }

func (u *user) putTopics(number int) {
	u.Helper()
	u.putMany(number, func(n int) state.Op {
		t := topic.Topic{Scope: u.elsewhere(), Name: fmt.Sprint("t", n)}
		return state.Put(state.Topic(t.Account, t.Region, t.Name), t)
	})
}

func (u *user) putSubscriptions(scope spec.Scope, name string, number int, attributes map[string]string) {
	u.Helper()
	u.putMany(number, func(n int) state.Op {
		sub := topic.Subscription{Scope: scope, ID: fmt.Sprint("s", n), Topic: name, Protocol: topic.HTTPS, Endpoint: fmt.Sprint("https://h/", n), Asked: u.now(), Attributes: attributes}
		return state.Put(state.Subscription(sub.Account, sub.Region, sub.Topic, sub.ID), sub)
	})
}

func TestTopicQuota(t *testing.T) {
	w := newWorld(t)
	u, other := w.user(t), w.user(t)
	u.do(newTopic)
	u.putTopics(maxTopics - 1)
	u.try("CreateTopic?Name=another").is("TopicLimitExceeded", "1000")
	u.do(newTopic) // it is there already
	u.do("DeleteTopic?TopicArn=" + topicARN)
	u.do("CreateTopic?Name=another")
	other.do(newTopic)
	u.try(newTopic+attribute(1, "Policy", `"`+strings.Repeat("x", maxTopicPolicy)+`"`)).is(badParam, "Policy")
}

func TestSubscriptionQuotas(t *testing.T) {
	w := newWorld(t)
	u, other := w.user(t), w.user(t)
	u.do(newTopic)
	u.do("CreateTopic?Name=second")
	u.do(subHook)
	second := strings.ReplaceAll(subHook, ":alarms", ":second")
	u.putSubscriptions(u.scope(), "alarms", maxTopicSubscriptions-1, nil)
	more := with(subHook, "Endpoint=https://hook.example/more")
	u.try(more).is("SubscriptionLimitExceeded", "A topic can have at most 1000")
	u.do(subHook) // it is there already
	u.do(second)
	for n := range maxSubscriptions/maxTopicSubscriptions - 1 {
		u.putSubscriptions(u.elsewhere(), fmt.Sprint("t", n), maxTopicSubscriptions, nil)
	}
	u.try(strings.ReplaceAll(more, ":alarms", ":second")).is("SubscriptionLimitExceeded", "An account can have at most 5000")
	other.do(newTopic)
	other.do(subHook)
}

func TestFilterQuotas(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newTopic)
	u.do(subHook)
	arn := u.asked().Only.ARN()
	set := "SetSubscriptionAttributes?SubscriptionArn=" + arn + "&AttributeName=FilterPolicy&AttributeValue=" + url.QueryEscape(filterJSON)
	with1 := with(subHook, "Endpoint=https://hook.example/more") + attribute(1, "FilterPolicy", filterJSON)
	u.putSubscriptions(u.scope(), "alarms", maxTopicFilters-1, map[string]string{topic.FilterPolicy: filterJSON})
	u.do(set)
	u.do(set) // it has one already
	u.try(with1).is("FilterPolicyLimitExceeded", "At most 200")
	u.do(with(subHook, "Endpoint=https://hook.example/plain"))
	u.do(strings.ReplaceAll(set, url.QueryEscape(filterJSON), ""))
	u.do(with1)
	u.try(set).is("FilterPolicyLimitExceeded", "At most 200")

	large := w.user(t)
	large.do(newTopic)
	policy := `{"a":["` + strings.Repeat("x", 200<<10) + `"]}`
	for n := range maxFilterBytes / (200 << 10) {
		large.putSubscriptions(large.elsewhere(), fmt.Sprint("t", n), 1, map[string]string{topic.FilterPolicy: policy})
	}
	large.try(subHook+attribute(1, "FilterPolicy", policy)).is("FilterPolicyLimitExceeded", "bytes together")
	large.do(subHook + attribute(1, "FilterPolicy", filterJSON))
}

// TestTooMuchIsPublished: messages that were not queued yet wait, up to a number
// and a size of each account.
func TestTooMuchIsPublished(t *testing.T) {
	w := newWorld(t)
	u, other := w.user(t), w.user(t)
	u.do(newTopic)
	u.do(subHook)
	sub := *u.asked().Only
	u.follow(topic.SubscribeURL("", sub))
	u.putMany(maxWaiting, func(n int) state.Op {
		return state.Put(state.Message(fmt.Sprintf("%s-%d", u.account, n)), topic.Message{Scope: u.scope()})
	})
	refused := u.try(publishCall)
	refused.is("Throttled", "wait for delivery")
	if refused.status != http.StatusTooManyRequests {
		t.Errorf("status %d", refused.status)
	}
	u.try(with(subHook, "Endpoint=https://hook.example/more")).is("Throttled", "wait for delivery")
	u.follow(topic.UnsubscribeURL("", sub)).is("Throttled", "wait for delivery")
	other.do(newTopic)
	other.do(publishCall)
	for n := range maxWaitingBytes / (1 << 20) {
		other.put(state.Put(state.Message(fmt.Sprintf("large-%d", n)), topic.Message{Scope: other.scope(), Body: make([]byte, 800<<10)}))
	}
	other.try(publishCall).is("Throttled", "wait for delivery")
}

func TestEventSubscriptionQuotas(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newTopic)
	u.do(with(newEvents, "SourceType=db-instance") + "&EventCategories.EventCategory.1=creation&EventCategories.EventCategory.2=deletion&EventCategories.EventCategory.3=creation").
		has("EventSubscription/EventCategoriesList/EventCategory#2")
	put := func(scope spec.Scope, number int) {
		u.putMany(number, func(n int) state.Op {
			e := topic.EventSubscription{Scope: scope, Name: fmt.Sprint("e", n)}
			return state.Put(state.EventSub(e.Account, e.Region, e.Name), e)
		})
	}
	for n := range look.MaxEventSubscriptions {
		put(spec.Scope{Account: u.account, Region: fmt.Sprint("eu-north-", n+1)}, 10)
	}
	u.try(with(newEvents, "SubscriptionName=more")).is("EventSubscriptionQuotaExceeded", "in all regions together")
	quotas := u.do("DescribeAccountAttributes")
	at := slices.Index(quotas.result().texts(quota+"/AccountQuotaName"), "EventSubscriptions")
	if at < 0 || quotas.result().texts(quota + "/Used")[at] != "1" || quotas.result().texts(quota + "/Max")[at] != fmt.Sprint(look.MaxEventSubscriptions) {
		t.Errorf("quotas %s", quotas.body)
	}
	put(u.scope(), look.MaxEventSubscriptions)
	u.try(with(newEvents, "SubscriptionName=more")).is("EventSubscriptionQuotaExceeded", "20 event subscriptions in a region")
}

// TestGivenUpIsShown: a subscription says how much of what it should have got is lost.
func TestGivenUpIsShown(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newTopic)
	u.do(subHook)
	sub := *u.asked().Only
	show := "GetSubscriptionAttributes?SubscriptionArn=" + sub.ARN()
	if shown := attributesOf(u.do(show)); shown[topic.GivenUpAttribute] != "" {
		t.Errorf("attributes %q", shown)
	}
	u.put(state.Put(state.GivenUp(state.Tail(state.Subscription(sub.Account, sub.Region, sub.Topic, sub.ID), state.SubscriptionRoot)), topic.GivenUp{Messages: 7, Last: u.now()}))
	if shown := attributesOf(u.do(show)); shown[topic.GivenUpAttribute] != "7" {
		t.Errorf("attributes %q", shown)
	}
}

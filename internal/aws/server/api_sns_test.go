package server

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"howdah/internal/aws/audit"
	"howdah/internal/aws/wire/shape"
	"howdah/internal/identity/home"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// The codes of SNS.
const (
	badParam = "InvalidParameter"
	notFound = "NotFound"
)

// Calls that scenarios build on.
const (
	newTopic   = "CreateTopic?Name=alarms"
	topicARN   = "arn:aws:sns:us-east-1:{account}:alarms"
	showTopic  = "GetTopicAttributes?TopicArn=" + topicARN
	setTopic   = "SetTopicAttributes?TopicArn=" + topicARN
	subHook    = "Subscribe?TopicArn=" + topicARN + "&Protocol=https&Endpoint=https://hook.example/in&ReturnSubscriptionArn=true"
	filterJSON = `{"EventID":["RDS-EVENT-0005"]}`
)

func attribute(n int, key, value string) string {
	return fmt.Sprintf("&Attributes.entry.%d.key=%s&Attributes.entry.%d.value=%s", n, key, n, url.QueryEscape(value))
}

var topicScenarios = []scenario{
	{
		name: "a topic", call: newTopic + "&Tags.member.1.Key=team&Tags.member.1.Value=blue" + attribute(1, "DisplayName", "Alarms"), want: []string{"TopicArn=" + topicARN},
		after: func(u *user) {
			u.do(newTopic).has(u.fill("TopicArn=" + topicARN))
			u.do(newTopic + attribute(1, "DisplayName", "Alarms"))
			u.try(newTopic+attribute(1, "DisplayName", "Others")).is(badParam, "different attributes")
			u.try(newTopic+"&Tags.member.1.Key=team&Tags.member.1.Value=red").is(badParam, "different tags")
			u.do("ListTopics").has("Topics/member#1", u.fill("Topics/member/TopicArn="+topicARN), "!NextToken")
			shown := attributesOf(u.do(showTopic))
			for name, want := range map[string]string{"Owner": u.account, "DisplayName": "Alarms", "SubscriptionsConfirmed": "0", "SubscriptionsPending": "0", "SubscriptionsDeleted": "0"} {
				if shown[name] != want {
					u.Errorf("%s is %q, want %q", name, shown[name], want)
				}
			}
			if !strings.Contains(shown["Policy"], `"Version":"2012-10-17"`) {
				u.Errorf("the policy is %q", shown["Policy"])
			}
			u.do(setTopic + "&AttributeName=SignatureVersion&AttributeValue=2")
			u.do(setTopic + "&AttributeName=DisplayName&AttributeValue=")
			if shown = attributesOf(u.do(showTopic)); shown["SignatureVersion"] != "2" || shown["DisplayName"] != "" {
				u.Errorf("attributes %q", shown)
			}
			u.do("DeleteTopic?TopicArn=" + topicARN)
			u.do("DeleteTopic?TopicArn=" + topicARN)
			u.try(showTopic).is(notFound, "Topic does not exist")
		},
	},
	{
		name: "tags", setup: having(newTopic), call: "TagResource?ResourceArn=" + topicARN + "&Tags.member.1.Key=a&Tags.member.1.Value=1&Tags.member.2.Key=b&Tags.member.2.Value=2",
		after: func(u *user) {
			u.do("UntagResource?ResourceArn=" + topicARN + "&TagKeys.member.1=a")
			u.do("sns:ListTagsForResource?ResourceArn="+topicARN).has("Tags/member#1", "Tags/member/Key=b", "Tags/member/Value=2")
			u.try("TagResource?ResourceArn="+topicARN+"&Tags.member.1.Key=aws:x&Tags.member.1.Value=1").is(badParam, "aws:")
			many := ""
			for n := range 51 {
				many += fmt.Sprintf("&Tags.member.%d.Key=k%d&Tags.member.%d.Value=v", n+1, n, n+1)
			}
			u.try("TagResource?ResourceArn="+topicARN+many).is("TagLimitExceeded", "50")
			u.try("sns:ListTagsForResource?ResourceArn="+topicARN+"x").is("ResourceNotFound", "")
			u.try("UntagResource?ResourceArn="+topicARN+"x&TagKeys.member.1=a").is("ResourceNotFound", "")
		},
	},
	{
		name: "pages of topics", setup: func(u *user) {
			for n := range 103 {
				u.do(fmt.Sprintf("CreateTopic?Name=t%03d", n))
			}
		}, call: "ListTopics", want: []string{"Topics/member#100"},
		after: func(u *user) {
			next := u.do("ListTopics").text("NextToken")
			u.do("ListTopics?NextToken="+next).has("Topics/member#3", "!NextToken")
			u.try("ListTopics?NextToken=x").is(badParam, "marker")
		},
	},
	{name: "another account's topic", setup: having(newTopic), call: newTopic, after: func(u *user) {
		other := u.world.user(u.T)
		other.try(u.fill(showTopic)).is("AuthorizationError", "another account")
		other.do("ListTopics").has("Topics/member#0")
		u.try("GetTopicAttributes?TopicArn=arn:aws:sns:eu-west-1:{account}:alarms").is(badParam, "region")
	}},
	{name: "no name", call: "CreateTopic", code: badParam, message: "Name"},
	{name: "a bad name", call: "CreateTopic?Name=a.b", code: badParam, message: "a.b"},
	{name: "too long a name", call: "CreateTopic?Name=" + strings.Repeat("x", 257), code: badParam},
	{name: "a FIFO topic", call: "CreateTopic?Name=a.fifo" + attribute(1, "FifoTopic", "true"), code: badParam, message: "FIFO"},
	{name: "a key", call: newTopic + attribute(1, "KmsMasterKeyId", "alias/x"), code: badParam, message: "KmsMasterKeyId"},
	{name: "a policy that is no JSON", call: newTopic + attribute(1, "Policy", "{"), code: badParam, message: "Policy"},
	{name: "a signature version", call: newTopic + attribute(1, "SignatureVersion", "3"), code: badParam, message: "1 or 2"},
	{name: "an attribute of nothing", setup: having(newTopic), call: setTopic + "&AttributeName=Color&AttributeValue=red", code: badParam, message: "Color"},
	{name: "a topic that is no ARN", call: "GetTopicAttributes?TopicArn=alarms", code: badParam, message: "TopicArn"},
	{name: "no topic", call: "GetTopicAttributes", code: badParam, message: "TopicArn"},
	{name: "an action that is not there", call: "sns:PublishBatch", code: "InvalidAction", message: "not available in this version"},
	{name: "an action of RDS", call: "sns:DescribeDBInstances", code: "InvalidAction", message: "not valid"},
}

// attributesOf are the attributes in an answer.
func attributesOf(a *answer) map[string]string {
	all := map[string]string{}
	for _, entry := range a.result().find("Attributes/entry") {
		all[entry.text("key")] = entry.text("value")
	}
	return all
}

// asked is the newest confirmation that waits for delivery: its token is what the
// endpoint would be told.
func (u *user) asked() topic.Message {
	u.Helper()
	var newest topic.Message
	for _, r := range state.LoadAll[topic.Message](u.server.Cache, state.MessageRoot) {
		if r.Value.Account == u.account && r.Value.Only != nil {
			newest = r.Value
		}
	}
	if newest.Only == nil {
		u.Fatal("nothing was asked")
	}
	return newest
}

// follow makes the unsigned call of a link.
func (u *user) follow(link string) *answer {
	u.Helper()
	_, query, _ := strings.Cut(link, "/?")
	answer, err := http.Get(u.http.URL + "/?" + query)
	if err != nil {
		u.Fatal(err)
	}
	defer answer.Body.Close()
	values, err := url.ParseQuery(query)
	if err != nil {
		u.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		u.Fatal(err)
	}
	return u.check(link, values.Get("Action"), answer.StatusCode, body)
}

var subscriptionScenarios = []scenario{
	{
		name: "a subscription is confirmed by the link that its endpoint is sent", setup: having(newTopic),
		call: strings.TrimSuffix(subHook, "&ReturnSubscriptionArn=true"), want: []string{"SubscriptionArn=pending confirmation"},
		after: func(u *user) {
			u.do("ListSubscriptions").has("Subscriptions/member#1", "Subscriptions/member/SubscriptionArn=PendingConfirmation", "Subscriptions/member/Protocol=https")
			sub := *u.asked().Only
			u.try("ConfirmSubscription?TopicArn="+topicARN+"&Token=guess").is(badParam, "Token")
			u.try("Unsubscribe?SubscriptionArn="+sub.ARN()).is(badParam, "not confirmed")
			if shown := attributesOf(u.do("GetSubscriptionAttributes?SubscriptionArn=" + sub.ARN())); shown["PendingConfirmation"] != "true" {
				u.Errorf("attributes %q", shown)
			}
			for range 2 {
				u.follow(topic.SubscribeURL("", sub)).has("SubscriptionArn=" + sub.ARN())
			}
			u.do("ListSubscriptionsByTopic?TopicArn="+topicARN).has("Subscriptions/member#1", "Subscriptions/member/SubscriptionArn="+sub.ARN())
			shown := attributesOf(u.do("GetSubscriptionAttributes?SubscriptionArn=" + sub.ARN()))
			if shown["PendingConfirmation"] != "false" || shown["ConfirmationWasAuthenticated"] != "false" || shown["RawMessageDelivery"] != "false" {
				u.Errorf("attributes %q", shown)
			}
			u.do(subHook).has("SubscriptionArn=" + sub.ARN())
			u.try(subHook+attribute(1, "RawMessageDelivery", "true")).is(badParam, "different attributes")
			u.do("Unsubscribe?SubscriptionArn=" + sub.ARN())
			u.do("Unsubscribe?SubscriptionArn=" + sub.ARN())
			if shown := attributesOf(u.do(showTopic)); shown["SubscriptionsDeleted"] != "1" || shown["SubscriptionsConfirmed"] != "0" {
				u.Errorf("attributes %q", shown)
			}
		},
	},
	{
		name: "who ends a subscription by a link may take it back", setup: having(newTopic, subHook), call: "ListSubscriptions",
		after: func(u *user) {
			sub := *u.asked().Only
			u.follow(topic.SubscribeURL("", sub))
			u.follow(topic.UnsubscribeURL("", sub)).is("", "")
			u.try("GetSubscriptionAttributes?SubscriptionArn="+sub.ARN()).is(notFound, "")
			u.do("ListSubscriptions").has("Subscriptions/member#0")
			again := u.asked()
			if again.Kind != topic.UnsubscribeConfirmation || again.Only.Token == sub.Token {
				u.Errorf("asked %+v", again)
			}
			u.follow(topic.SubscribeURL("", *again.Only)).has("SubscriptionArn=" + sub.ARN())
			u.do("ListSubscriptions").has("Subscriptions/member#1")
		},
	},
	{
		name: "one that only who signs may end", setup: having(newTopic, subHook), call: "ListSubscriptions",
		after: func(u *user) {
			sub := *u.asked().Only
			u.do("ConfirmSubscription?TopicArn=" + topicARN + "&AuthenticateOnUnsubscribe=true&Token=" + sub.Token)
			u.follow(topic.UnsubscribeURL("", sub)).is("AuthorizationError", "signed")
			if shown := attributesOf(u.do("GetSubscriptionAttributes?SubscriptionArn=" + sub.ARN())); shown["ConfirmationWasAuthenticated"] != "true" {
				u.Errorf("attributes %q", shown)
			}
			u.do("Unsubscribe?SubscriptionArn=" + sub.ARN())
		},
	},
	{
		name: "asked again, the old link does not count", setup: having(newTopic, subHook), call: subHook,
		after: func(u *user) {
			all := state.LoadAll[topic.Message](u.server.Cache, state.MessageRoot)
			var links []topic.Subscription
			for _, r := range all {
				if r.Value.Account == u.account {
					links = append(links, *r.Value.Only)
				}
			}
			if len(links) != 2 || links[0].ARN() != links[1].ARN() {
				u.Fatalf("asked %+v", links)
			}
			u.follow(topic.SubscribeURL("", links[0])).is(badParam, "Token")
			u.follow(topic.SubscribeURL("", links[1])).is("", "")
		},
	},
	{
		name: "attributes", setup: having(newTopic), call: subHook + attribute(1, "FilterPolicy", filterJSON) + attribute(2, "RawMessageDelivery", "true"),
		after: func(u *user) {
			arn := u.asked().Only.ARN()
			set := "SetSubscriptionAttributes?SubscriptionArn=" + arn + "&AttributeName="
			shown := attributesOf(u.do("GetSubscriptionAttributes?SubscriptionArn=" + arn))
			if shown["FilterPolicy"] != filterJSON || shown["FilterPolicyScope"] != "MessageAttributes" || shown["RawMessageDelivery"] != "true" {
				u.Errorf("attributes %q", shown)
			}
			nested := url.QueryEscape(`{"a":{"b":["c"]}}`)
			u.try(set+"FilterPolicy&AttributeValue="+nested).is(badParam, "FilterPolicy")
			u.do(set + "FilterPolicyScope&AttributeValue=MessageBody")
			u.do(set + "FilterPolicy&AttributeValue=" + nested)
			u.try(set+"FilterPolicyScope&AttributeValue=MessageAttributes").is(badParam, "FilterPolicy")
			u.do(set + "FilterPolicy&AttributeValue=" + url.QueryEscape("{}"))
			if shown := attributesOf(u.do("GetSubscriptionAttributes?SubscriptionArn=" + arn)); shown["FilterPolicy"] != "" {
				u.Errorf("attributes %q", shown)
			}
			u.try(set+"RawMessageDelivery&AttributeValue=maybe").is(badParam, "true or false")
			u.try(set+"Color&AttributeValue=red").is(badParam, "Color")
			u.try(set+"RedrivePolicy&AttributeValue=x").is(badParam, "RedrivePolicy")
			u.try("SetSubscriptionAttributes?AttributeName=RawMessageDelivery&SubscriptionArn="+arn+"x").is(notFound, "")
		},
	},
	{
		name: "a topic goes with its subscriptions", setup: having(newTopic, subHook, "DeleteTopic?TopicArn="+topicARN, newTopic),
		call: "ListSubscriptions", want: []string{"Subscriptions/member#0"},
		after: func(u *user) { u.follow(topic.SubscribeURL("", *u.asked().Only)).is(badParam, "Token") },
	},
	{name: "no topic to subscribe", call: subHook, code: notFound},
	{name: "a subscription that is no ARN", call: "GetSubscriptionAttributes?SubscriptionArn=PendingConfirmation", code: badParam, message: "SubscriptionArn"},
	{name: "another account's subscription", call: "Unsubscribe?SubscriptionArn=arn:aws:sns:us-east-1:999999999999:a:b", code: "AuthorizationError"},
}

func init() {
	subscriptionScenarios = append(subscriptionScenarios, refusals(having(newTopic), subHook, []refusal{
		{"-Protocol", badParam, "Protocol"},
		{"Protocol=pigeon", badParam, "pigeon"},
		{"Protocol=sqs", badParam, "not available"},
		{"Protocol=lambda", badParam, "not available"},
		{"Protocol=email&Endpoint=a@example.org", badParam, "--smtp"},
		{"-Endpoint", badParam, "Endpoint"},
		{"Protocol=http", badParam, "http://"},
		{"Endpoint=https://", badParam, "Endpoint"},
		{"Endpoint=https://a/%23b", badParam, "fragment"},
		{"Endpoint=file:///etc/passwd", badParam, "Endpoint"},
		{"Endpoint=https://a/%0d%0aX:y", badParam, "Endpoint"},
		{"Attributes.entry.1.key=FilterPolicy&Attributes.entry.1.value=x", badParam, "FilterPolicy"},
		{"Attributes.entry.1.key=Color&Attributes.entry.1.value=x", badParam, "Color"},
	})...)
}

const publishCall = "Publish?TopicArn=" + topicARN + "&Message=hello&Subject=Greetings"

var publishScenarios = append([]scenario{
	{
		name: "a message", setup: having(newTopic), call: publishCall +
			"&MessageAttributes.entry.1.Name=size&MessageAttributes.entry.1.Value.DataType=Number&MessageAttributes.entry.1.Value.StringValue=7" +
			"&MessageAttributes.entry.2.Name=raw&MessageAttributes.entry.2.Value.DataType=Binary&MessageAttributes.entry.2.Value.BinaryValue=AQI=",
		after: func(u *user) {
			all := state.LoadAll[topic.Message](u.server.Cache, state.MessageRoot)
			m := all[len(all)-1].Value
			if m.Text("https") != "hello" || m.Subject != "Greetings" || m.Attributes["size"] != (topic.Attribute{Type: "Number", Value: "7"}) || m.Attributes["raw"].Value != "AQI=" {
				u.Errorf("published %+v", m)
			}
			if again := u.do(publishCall).text("MessageId"); again == m.ID || again == "" {
				u.Errorf("messages %s and %s", m.ID, again)
			}
			u.do("Publish?Message=x&TargetArn=" + topicARN)
		},
	},
	{
		name: "a text for each protocol", setup: having(newTopic), call: "Publish?MessageStructure=json&TopicArn=" + topicARN + "&Message=" + url.QueryEscape(`{"default":"all","email":"mail"}`),
		after: func(u *user) {
			all := state.LoadAll[topic.Message](u.server.Cache, state.MessageRoot)
			if m := all[len(all)-1].Value; m.Text("https") != "all" || m.Text("email") != "mail" {
				u.Errorf("published %+v", m)
			}
		},
	},
	{name: "no topic to publish to", call: publishCall, code: notFound},
}, refusals(having(newTopic), publishCall, []refusal{
	{"-Message", badParam, "Message"},
	{"Message=", badParam, "Empty message"},
	{"Message=%ff", badParam, "UTF-8"},
	{"Message=" + strings.Repeat("x", 256<<10+1), badParam, "too long"},
	{"Subject=", badParam, "Subject"},
	{"Subject=a%0ab", badParam, "Subject"},
	{"Subject=" + strings.Repeat("x", 101), badParam, "Subject"},
	{"MessageStructure=xml", badParam, "json"},
	{"MessageStructure=json", badParam, "failed to parse"},
	{"MessageStructure=json&Message={}", badParam, "default"},
	{"PhoneNumber=1", badParam, "SMS"},
	{"MessageGroupId=1", badParam, "FIFO"},
	{"TargetArn=x", badParam, "both"},
	{"MessageAttributes.entry.1.Name=a", badParam, "Value"},
	{"MessageAttributes.entry.1.Name=a&MessageAttributes.entry.1.Value.DataType=Color&MessageAttributes.entry.1.Value.StringValue=x", "ParameterValueInvalid", "Color"},
	{"MessageAttributes.entry.1.Name=a&MessageAttributes.entry.1.Value.DataType=Number&MessageAttributes.entry.1.Value.StringValue=x", "ParameterValueInvalid", "number"},
	{"MessageAttributes.entry.1.Name=a&MessageAttributes.entry.1.Value.DataType=String", "ParameterValueInvalid", "StringValue"},
	{"MessageAttributes.entry.1.Name=a&MessageAttributes.entry.1.Value.DataType=Binary&MessageAttributes.entry.1.Value.BinaryValue=!", "ParameterValueInvalid", "BinaryValue"},
	{"MessageAttributes.entry.1.Name=AWS.a&MessageAttributes.entry.1.Value.DataType=String&MessageAttributes.entry.1.Value.StringValue=x", "ParameterValueInvalid", "AWS.a"},
})...)

// TestTokenAges: a subscription is not confirmed for ever.
func TestTokenAges(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newTopic)
	u.do(subHook)
	sub := *u.asked().Only
	w.at(time.Now().Add(topic.TokenLife + time.Minute))
	u.follow(topic.SubscribeURL("", sub)).is(badParam, "subscribe again")
	u.do("ListSubscriptions").has("Subscriptions/member#0")
}

// TestUnsigned: only the links of messages go without a signature.
func TestUnsigned(t *testing.T) {
	u := newWorld(t).user(t)
	u.do(newTopic)
	for link, code := range map[string]string{
		"/?Action=ListTopics": "MissingAuthenticationToken",
		"/?Action=Publish&Message=x&TopicArn=" + u.fill(topicARN):          "MissingAuthenticationToken",
		"/?Action=DeleteTopic&TopicArn=" + u.fill(topicARN):                "MissingAuthenticationToken",
		"/?Action=ConfirmSubscription&Token=x&TopicArn=nonsense":           "MissingAuthenticationToken",
		"/?Action=ConfirmSubscription":                                     "MissingAuthenticationToken",
		"/?Action=ConfirmSubscription&TopicArn=" + u.fill(topicARN):        badParam,
		"/?Action=ConfirmSubscription&Token=&TopicArn=" + u.fill(topicARN): badParam,
		"/?Action=Unsubscribe&SubscriptionArn=" + u.fill(topicARN) + ":x":  "",
	} {
		u.follow(link).is(code, "")
	}
	if status, body := u.send("Action=ListTopics", "sns", nil); status != http.StatusOK || shape.Check("ListTopics", body) != nil {
		t.Errorf("signed for SNS: %d %s", status, body)
	}
}

// TestLinksAreRecorded: who was sent a link is told apart from who guesses one.
func TestLinksAreRecorded(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newTopic)
	u.do(subHook)
	sub := *u.asked().Only
	guess := sub
	guess.ID, guess.Token = "guess", "guess"
	links := []struct {
		link, code string
		known      bool
	}{
		{topic.SubscribeURL("", guess), badParam, false},
		{topic.UnsubscribeURL("", guess), "", false},
		{topic.UnsubscribeURL("", sub), badParam, true}, // not confirmed yet
		{topic.SubscribeURL("", sub), "", true},
		{topic.SubscribeURL("", sub), "", true},
		{topic.UnsubscribeURL("", sub), "", true},
		{topic.UnsubscribeURL("", sub), "", false}, // gone
	}
	began := time.Now()
	for _, l := range links {
		u.follow(l.link).is(l.code, "")
	}
	for range 100 { // strangers, who do not keep the next one from being recorded
		u.follow(topic.UnsubscribeURL("", guess))
	}
	u.follow(topic.SubscribeURL("", *u.asked().Only))
	var all []audit.Record
	if err := audit.Read(w.server.Home.AuditDir(), began, func(r audit.Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	for i, l := range links {
		if r := all[i]; r.ByLink != l.known || r.User != "" || r.Code != l.code || l.known != (r.Account == u.account && r.Region == u.region) {
			t.Errorf("%d: %+v", i, r)
		}
	}
	last := all[len(all)-1]
	if !last.ByLink || last.Action != "ConfirmSubscription" || last.Status != http.StatusOK || len(all) >= 100 {
		t.Errorf("%d records, the last is %+v", len(all), last)
	}
}

// TestSubscribeByMail: with a relay, mail can be subscribed, to one plain address.
func TestSubscribeByMail(t *testing.T) {
	w := newWorld(t)
	w.server.Home.SMTP = &home.SMTP{Relay: "127.0.0.1:25", From: "a@example.org"}
	u := w.user(t)
	u.do(newTopic)
	call := "Subscribe?TopicArn=" + topicARN + "&Protocol=email&Endpoint="
	u.do(call + "ops@example.org")
	u.do(with(call, "Protocol=email-json", "Endpoint=ops@example.org"))
	u.do("ListSubscriptions").has("Subscriptions/member#2")
	for _, bad := range []string{"", "ops", "a@b,c@d", "Ops+<ops@example.org>", "a@b%0d%0aBcc:c@d", "a@b c@d", "ö@example.org"} {
		u.try(call+bad).is(badParam, "Endpoint")
	}
	u.try(call+"b@example.org"+attribute(1, "RawMessageDelivery", "true")).is(badParam, "RawMessageDelivery")
}

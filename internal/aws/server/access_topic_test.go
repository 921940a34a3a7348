package server

import (
	"strings"
	"testing"
)

// TestPoliciesOfTopics: policies know a topic by its ARN, also one that is not made
// yet, and by its tags; a subscription is its topic's.
func TestPoliciesOfTopics(t *testing.T) {
	w := newWorld(t)
	red := "&Tags.member.1.Key=team&Tags.member.1.Value=red"
	other := strings.ReplaceAll(topicARN, ":alarms", ":Alarms")
	for _, test := range []struct {
		name, policy string
		allowed      []string
		denied       []string
	}{
		{
			name: "a deny of one topic", policy: `[` + allowAll + `,{"Effect":"Deny","Action":"sns:*","Resource":"arn:aws:sns:*:*:alarms"}]`,
			allowed: []string{"CreateTopic?Name=Alarms", "ListTopics", "Publish?Message=x&TopicArn=" + other, "DeleteTopic?TopicArn=" + other},
			denied: []string{
				newTopic, publishCall, showTopic, subHook, "Publish?Message=x&TargetArn=" + topicARN, "DeleteTopic?TopicArn=" + topicARN,
				"Publish?Message=x&TopicArn=" + strings.ReplaceAll(topicARN, "arn:aws:", "arn:aws-x:"),
				"TagResource?ResourceArn=" + topicARN + red, "sns:ListTagsForResource?ResourceArn=" + topicARN,
				"GetSubscriptionAttributes?SubscriptionArn=" + topicARN + ":an-id", "Unsubscribe?SubscriptionArn=" + topicARN + ":an-id",
			},
		},
		{
			name: "a prefix of names", policy: `{"Effect":"Allow","Action":"sns:*","Resource":"arn:aws:sns:us-east-1:ACCOUNT:test-*"}`,
			allowed: []string{"CreateTopic?Name=test-1", "Publish?Message=x&TopicArn=arn:aws:sns:us-east-1:{account}:test-1"},
			denied:  []string{"CreateTopic?Name=Test-1", "CreateTopic?Name=prod", publishCall, "ListTopics"},
		},
		{
			name: "a deny by the tags that a topic has", policy: `[` + allowAll + `,{"Effect":"Deny","Action":["sns:Publish","sns:DeleteTopic","sns:CreateTopic"],"Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/team":"blue"}}}]`,
			allowed: []string{"CreateTopic?Name=Alarms", "Publish?Message=x&TopicArn=" + other, showTopic, "UntagResource?TagKeys.member.1=team&ResourceArn=" + topicARN, publishCall},
		},
		{
			name: "tags are looked at before they are changed", policy: `[` + allowAll + `,{"Effect":"Deny","Action":"sns:*","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/team":"blue"}}}]`,
			allowed: []string{"CreateTopic?Name=Alarms"},
			denied: []string{
				publishCall, "DeleteTopic?TopicArn=" + topicARN, newTopic, subHook, "UntagResource?TagKeys.member.1=team&ResourceArn=" + topicARN, "TagResource?ResourceArn=" + topicARN + red,
				"Unsubscribe?SubscriptionArn=" + topicARN + ":an-id",
			},
		},
		{
			name:    "only with a tag of the request",
			policy:  `{"Effect":"Allow","Action":"sns:*","Resource":"*","Condition":{"StringEquals":{"aws:RequestTag/team":"red"},"ForAllValues:StringEquals":{"aws:TagKeys":["team"]}}}`,
			allowed: []string{"CreateTopic?Name=mine" + red, "TagResource?ResourceArn=" + topicARN + red},
			denied: []string{
				"CreateTopic?Name=mine2", "CreateTopic?Name=mine2" + strings.ReplaceAll(red, "red", "blue"),
				"CreateTopic?Name=mine2" + red + "&Tags.member.2.Key=x&Tags.member.2.Value=y", "UntagResource?TagKeys.member.1=team&ResourceArn=" + topicARN,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := w.user(t)
			root.do(newTopic + strings.ReplaceAll(red, "red", "blue"))
			u := root.withPolicy(test.policy)
			for _, call := range test.allowed {
				u.do(call)
			}
			for _, call := range test.denied {
				u.try(call).is(denied, "arn:aws:iam::"+u.account+":user/ci is not authorized")
			}
		})
	}
}

// TestPoliciesWithCapitals: RDS's names mean the same in any case, in policies too.
func TestPoliciesWithCapitals(t *testing.T) {
	u := newWorld(t).user(t)
	u.do(newTopic)
	u.do(newEvents)
	u.do("AddTagsToResource?ResourceName=arn:aws:rds:us-east-1:{account}:es:watch&Tags.Tag.1.Key=team&Tags.Tag.1.Value=blue")
	having(newDB)(u)
	drop, show := "DeleteEventSubscription?SubscriptionName=", "DescribeEventSubscriptions?SubscriptionName="
	k := u.withPolicy(`[` + allowAll + `,{"Effect":"Deny","Action":"rds:Delete*","Resource":["arn:aws:rds:*:*:es:Watch","arn:aws:rds:*:*:db:DB"]}]`)
	for _, name := range []string{"watch", "Watch", "WATCH", "%20watch%20"} {
		k.try(drop+name).is(denied, "explicit deny")
		k.do(show + name)
	}
	k.try(drop+"watch2").is("SubscriptionNotFound", "")
	k.try(dropDB).is(denied, "explicit deny")
	tagged := u.withPolicy(`[` + allowAll + `,{"Effect":"Deny","Action":"rds:*","Resource":"*","Condition":{"StringEquals":{"rds:es-tag/team":"blue"}}}]`)
	tagged.try(drop+"WATCH").is(denied, "explicit deny")
	tagged.do(showDB)
}

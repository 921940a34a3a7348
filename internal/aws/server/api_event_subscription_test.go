package server

import (
	"fmt"
	"slices"

	"howdah/internal/aws/rds/look"
)

const (
	newEvents  = "CreateEventSubscription?SubscriptionName=Watch&SnsTopicArn=" + topicARN
	showEvents = "DescribeEventSubscriptions?SubscriptionName=watch"
	setEvents  = "ModifyEventSubscription?SubscriptionName=watch"
	one        = "EventSubscriptionsList/EventSubscription/"
)

var eventSubscriptionScenarios = slices.Concat([]scenario{
	{
		name: "an event subscription", setup: having(newTopic, newDB),
		call: newEvents + "&SourceType=db-instance&SourceIds.SourceId.1=DB&EventCategories.EventCategory.1=creation&EventCategories.EventCategory.2=low+storage&Tags.Tag.1.Key=a",
		want: []string{
			"EventSubscription/CustSubscriptionId=Watch", "EventSubscription/Status=creating", "EventSubscription/SourceIdsList/SourceId=db",
			"EventSubscription/EventCategoriesList/EventCategory#2", "EventSubscription/Enabled=true", "EventSubscription/SnsTopicArn=" + topicARN,
			"EventSubscription/EventSubscriptionArn=arn:aws:rds:us-east-1:{account}:es:Watch", "EventSubscription/CustomerAwsId={account}",
		},
		after: func(u *user) {
			u.do(showEvents).has(one+"Status=active", one+"SourceType=db-instance")
			u.try(newEvents).is("SubscriptionAlreadyExist", "Watch")
			u.do(setEvents+"&Enabled=false&EventCategories=").has("EventSubscription/Status=modifying", "EventSubscription/Enabled=false", "EventSubscription/EventCategoriesList/EventCategory#0")
			u.try(setEvents+"&SourceType=db-cluster").is("SourceNotFound", "db")
			u.try(setEvents+"&SnsTopicArn="+topicARN+"x").is("SNSTopicArnNotFound", "")
			arn := "ResourceName=arn:aws:rds:us-east-1:{account}:es:Watch"
			u.do("AddTagsToResource?" + arn + "&Tags.Tag.1.Key=b&Tags.Tag.1.Value=c")
			u.do("ListTagsForResource?" + arn).has("TagList/Tag#2")
			u.do("DeleteTopic?TopicArn=" + topicARN)
			u.do(showEvents).has(one + "Status=topic-not-exist")
			u.do(newTopic)
			u.do(showEvents).has(one + "Status=active")
			u.do("DeleteEventSubscription?SubscriptionName=watch").has("EventSubscription/Status=deleting")
			u.try("DeleteEventSubscription?SubscriptionName=watch").is("SubscriptionNotFound", "watch")
			u.try(showEvents).is("SubscriptionNotFound", "watch")
			u.do("DescribeEventSubscriptions").has("EventSubscriptionsList/EventSubscription#0")
		},
	},
	{
		name: "sources come and go", setup: having(newTopic, newDB, with(newDB, "DBInstanceIdentifier=db-2"), newEvents+"&SourceType=db-instance&SourceIds.SourceId.1=db"),
		call: "AddSourceIdentifierToSubscription?SubscriptionName=watch&SourceIdentifier=db-2", want: []string{"EventSubscription/SourceIdsList/SourceId#2"},
		after: func(u *user) {
			add, remove := "AddSourceIdentifierToSubscription?SubscriptionName=watch&SourceIdentifier=", "RemoveSourceIdentifierFromSubscription?SubscriptionName=watch&SourceIdentifier="
			u.do(add + "db-2").has("EventSubscription/SourceIdsList/SourceId#2")
			u.try(add+"db-3").is("SourceNotFound", "db-3")
			u.do(remove + "db").has("EventSubscription/SourceIdsList/SourceId=db-2")
			u.try(remove+"db").is("SourceNotFound", "db")
			u.try(remove+"db-2").is(badMix, "last one")
			u.try("AddSourceIdentifierToSubscription?SubscriptionName=none&SourceIdentifier=db").is("SubscriptionNotFound", "none")
			u.do("DeleteDBInstance?DBInstanceIdentifier=db-2&SkipFinalSnapshot=true")
			u.settle()
			u.do(setEvents + "&Enabled=false")
		},
	},
	{
		name: "no source without a type", setup: having(newTopic, newDB, newEvents), call: "AddSourceIdentifierToSubscription?SubscriptionName=watch&SourceIdentifier=db",
		code: badMix, message: "SourceType",
	},
	{
		name: "twenty are enough", setup: func(u *user) {
			u.do(newTopic)
			for n := range look.MaxEventSubscriptions {
				u.do(with(newEvents, fmt.Sprintf("SubscriptionName=s%d", n)))
			}
		}, call: newEvents, code: "EventSubscriptionQuotaExceeded",
		after: func(u *user) {
			u.do("DescribeEventSubscriptions?MaxRecords=20").has("EventSubscriptionsList/EventSubscription#20", "!Marker")
			u.world.user(u.T).do("DescribeEventSubscriptions").has("EventSubscriptionsList/EventSubscription#0")
		},
	},
	{name: "all categories", call: "DescribeEventCategories", want: []string{
		"EventCategoriesMapList/EventCategoriesMap#11", "EventCategoriesMapList/EventCategoriesMap[1]/SourceType=db-instance",
		"EventCategoriesMapList/EventCategoriesMap[1]/EventCategories/EventCategory#16",
	}},
	{name: "categories of a type", call: "DescribeEventCategories?SourceType=db-parameter-group", want: []string{
		"EventCategoriesMapList/EventCategoriesMap#1", "EventCategoriesMapList/EventCategoriesMap/EventCategories/EventCategory=configuration change",
	}},
	{name: "categories of nothing", call: "DescribeEventCategories?SourceType=db-toaster", code: badValue, message: "db-toaster"},
	{name: "a filter", call: "DescribeEventSubscriptions?Filters.Filter.1.Name=x&Filters.Filter.1.Values.Value.1=y", code: badValue, message: "filter"},
}, refusals(having(newTopic, newDB), newEvents, []refusal{
	{"-SubscriptionName", missing, "SubscriptionName"},
	{"SubscriptionName=1a", badValue, "SubscriptionName"},
	{"SubscriptionName=a--b", badValue, "SubscriptionName"},
	{"-SnsTopicArn", missing, "SnsTopicArn"},
	{"SnsTopicArn=alarms", "SNSInvalidTopic", "alarms"},
	{"SnsTopicArn=arn:aws:sns:us-east-1:{account}:a.fifo", "SNSInvalidTopic", "fifo"},
	{"SnsTopicArn=arn:aws:sns:us-east-1:{account}:none", "SNSTopicArnNotFound", "none"},
	{"SnsTopicArn=arn:aws:sns:us-east-1:999999999999:alarms", "SNSNoAuthorization", "999999999999"},
	{"SourceType=db-toaster", badValue, "SourceType"},
	{"SourceIds.SourceId.1=db", badMix, "SourceType"},
	{"SourceType=db-instance&SourceIds.SourceId.1=none", "SourceNotFound", "none"},
	{"SourceType=db-cluster&SourceIds.SourceId.1=db", "SourceNotFound", "db"},
	{"SourceType=db-snapshot&SourceIds.SourceId.1=db", "SourceNotFound", "db"},
	{"EventCategories.EventCategory.1=lunch", "SubscriptionCategoryNotFound", "lunch"},
	{"SourceType=db-parameter-group&EventCategories.EventCategory.1=failover", "SubscriptionCategoryNotFound", "failover"},
	{"Tags.Tag.1.Key=rds:x", badValue, "rds:"},
}))

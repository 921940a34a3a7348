// Package subscription is about what databases tell: the events of a region, and subscriptions
// that have events published to a topic.
package subscription

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// service has the handlers.
type service struct {
	*state.Client
	looks *look.Source
}

// Actions are those on events and subscriptions to them.
func Actions(client *state.Client, looks *look.Source) map[string]front.Action {
	s := &service{client, looks}
	return map[string]front.Action{
		"AddSourceIdentifierToSubscription":      front.On(s.addSource),
		"CreateEventSubscription":                front.On(s.create),
		"DeleteEventSubscription":                front.On(s.delete),
		"DescribeEventCategories":                front.On(s.describeEventCategories),
		"DescribeEventSubscriptions":             front.On(s.describe),
		"DescribeEvents":                         front.On(s.describeEvents),
		"ModifyEventSubscription":                front.On(s.modify),
		"RemoveSourceIdentifierFromSubscription": front.On(s.removeSource),
	}
}

// maxInAccount is how many subscriptions an account may have in all regions together.
const maxInAccount = 10 * look.MaxEventSubscriptions

// The status words of event subscriptions. A subscription is active at once; the words in
// between are what RDS answers to the calls themselves.
const (
	creating  = "creating"
	modifying = "modifying"
	deleting  = "deleting"
	active    = "active"
	noTopic   = "topic-not-exist"
)

var goodName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,253}$`)

// create has events published to a topic from now on.
func (s *service) create(ctx context.Context, c front.Call, in *rds.CreateEventSubscriptionMessage) (*rds.CreateEventSubscriptionResult, error) {
	e := topic.EventSubscription{
		Scope: c.Scope, Name: strings.TrimSpace(wire.Or(in.SubscriptionName, "")), TopicARN: wire.Or(in.SnsTopicArn, ""), SourceType: event.SourceType(wire.Or(in.SourceType, "")),
		Sources: lowered(in.SourceIds), Categories: distinct(in.EventCategories), Enabled: wire.Or(in.Enabled, true), Tags: look.TagsIn(in.Tags), Created: c.Now,
	}
	if !goodName.MatchString(e.Name) || strings.HasSuffix(e.Name, "-") || strings.Contains(e.Name, "--") {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "The parameter SubscriptionName is not a valid identifier: it must begin with a letter, "+
			"contain only letters, digits and hyphens, at most 254 of them, and not end with a hyphen or contain two consecutive hyphens.")
	}
	if err := spec.CheckTags(e.Tags); err != nil {
		return nil, err
	}
	err := s.Retry(ctx, func() error {
		if _, err := find(s.Cache, c.Scope, &e.Name); err == nil {
			return wire.NewError(rds.ErrSubscriptionAlreadyExist, "Event subscription %s already exists.", e.Name)
		}
		if len(s.all(c)) >= look.MaxEventSubscriptions {
			return wire.NewError(rds.ErrEventSubscriptionQuotaExceeded, "An account can have at most %d event subscriptions in a region.", look.MaxEventSubscriptions)
		}
		if len(s.Cache.Keys(state.EventSubRoot+c.Account+"/")) >= maxInAccount {
			return wire.NewError(rds.ErrEventSubscriptionQuotaExceeded, "An account can have at most %d event subscriptions in all regions together.", maxInAccount)
		}
		if err := s.check(c, e); err != nil {
			return err
		}
		return s.Commit(ctx, state.Swap(state.EventSub(c.Account, c.Region, e.Name), 0, e))
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateEventSubscriptionResult{EventSubscription: shown(e, creating)}, nil
}

// distinct leaves out what was there before.
func distinct(all []string) []string {
	var once []string
	seen := map[string]bool{}
	for _, one := range all {
		if !seen[one] {
			once = append(once, one)
		}
		seen[one] = true
	}
	return once
}

// all are the subscriptions of a region, by name.
func (s *service) all(c front.Call) []state.Record[topic.EventSubscription] {
	return state.LoadAll[topic.EventSubscription](s.Cache, state.EventSub(c.Account, c.Region, ""))
}

func find(cache *state.Cache, c spec.Scope, name *string) (state.Record[topic.EventSubscription], error) {
	wanted := strings.TrimSpace(wire.Or(name, ""))
	r, err := state.Load[topic.EventSubscription](cache, state.EventSub(c.Account, c.Region, wanted))
	if err != nil || wanted == "" {
		return r, look.OrBlank(wanted, "SubscriptionName", wire.NewError(rds.ErrSubscriptionNotFound, "Subscription %s not found.", wanted))
	}
	return r, nil
}

// check checks what a subscription names.
func (s *service) check(c front.Call, e topic.EventSubscription) error {
	if err := s.checkTopic(c, e.TopicARN); err != nil {
		return err
	}
	if e.SourceType != "" && event.Categories(e.SourceType) == nil {
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid SourceType: %s.", e.SourceType)
	}
	if len(e.Sources) > 0 && e.SourceType == "" {
		return wire.NewError(api.ErrInvalidParameterCombination, "SourceIds requires the parameter SourceType.")
	}
	for _, category := range e.Categories {
		if !hasCategory(e.SourceType, category) {
			return wire.NewError(rds.ErrSubscriptionCategoryNotFound, "The event category %s does not exist for the source type %s.", category, sourceTypeText(e.SourceType))
		}
	}
	for _, name := range e.Sources {
		if err := s.checkSource(c, e.SourceType, name); err != nil {
			return err
		}
	}
	return nil
}

func sourceTypeText(t event.SourceType) string {
	if t == "" {
		return "of any kind"
	}
	return string(t)
}

func hasCategory(kind event.SourceType, category string) bool {
	if kind != "" {
		return slices.Contains(event.Categories(kind), category)
	}
	return slices.ContainsFunc(event.SourceTypes, func(t event.SourceType) bool { return slices.Contains(event.Categories(t), category) })
}

// checkTopic refuses what cannot be published to: RDS publishes to topics of the account that owns
// the databases.
func (s *service) checkTopic(c front.Call, arn string) error {
	scope, name, ok := topic.ParseARN(arn)
	switch {
	case !ok || !topic.GoodName(name):
		return wire.NewError(rds.ErrSNSInvalidTopic, "SNS has responded that there is a problem with the SNS topic specified: SnsTopicArn %q is not the ARN of a standard topic.", arn)
	case scope.Account != c.Account:
		return wire.NewError(rds.ErrSNSNoAuthorization, "You do not have permission to publish to the SNS topic ARN %s.", arn)
	}
	if _, err := state.Load[topic.Topic](s.Cache, state.Topic(scope.Account, scope.Region, name)); err != nil {
		return wire.NewError(rds.ErrSNSTopicArnNotFound, "SNS topic ARN %s does not exist.", arn)
	}
	return nil
}

// describe lists event subscriptions, or shows one.
func (s *service) describe(ctx context.Context, c front.Call, in *rds.DescribeEventSubscriptionsMessage) (*rds.EventSubscriptionsMessage, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	all := s.all(c)
	if in.SubscriptionName != nil {
		one, err := find(s.Cache, c.Scope, in.SubscriptionName)
		if err != nil {
			return nil, err
		}
		all = []state.Record[topic.EventSubscription]{one}
	}
	chosen, marker, err := page.Of(all, func(r state.Record[topic.EventSubscription]) string { return r.Key }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.EventSubscriptionsMessage{Marker: marker, EventSubscriptionsList: []rds.EventSubscription{}}
	for _, r := range chosen {
		out.EventSubscriptionsList = append(out.EventSubscriptionsList, *shown(r.Value, s.status(r.Value)))
	}
	return out, nil
}

// status says whether the topic is there: it may disappear, and come back.
func (s *service) status(e topic.EventSubscription) string {
	scope, name, ok := topic.ParseARN(e.TopicARN)
	if _, err := state.Load[topic.Topic](s.Cache, state.Topic(scope.Account, scope.Region, name)); err != nil || !ok {
		return noTopic
	}
	return active
}

func shown(e topic.EventSubscription, status string) *rds.EventSubscription {
	return &rds.EventSubscription{
		CustomerAwsId: wire.Some(e.Account), CustSubscriptionId: wire.Some(e.Name), SnsTopicArn: wire.Some(e.TopicARN), Status: wire.Some(status),
		SubscriptionCreationTime: wire.Some(e.Created.UTC().Format("Mon Jan 02 15:04:05 MST 2006")), SourceType: wire.Text(string(e.SourceType)),
		SourceIdsList: wire.List(e.Sources), EventCategoriesList: wire.List(e.Categories), Enabled: wire.Some(e.Enabled), EventSubscriptionArn: wire.Some(e.ARN("es", e.Name)),
	}
}

// modify changes what is published, and where. Sources have actions of their own.
func (s *service) modify(ctx context.Context, c front.Call, in *rds.ModifyEventSubscriptionMessage) (*rds.ModifyEventSubscriptionResult, error) {
	e, err := s.change(ctx, c, in.SubscriptionName, func(e *topic.EventSubscription) error {
		wire.Set(&e.TopicARN, in.SnsTopicArn)
		wire.Set(&e.Enabled, in.Enabled)
		if in.SourceType != nil {
			e.SourceType = event.SourceType(*in.SourceType)
		}
		if in.EventCategories != nil {
			e.Categories = distinct(in.EventCategories)
		}
		wanted := *e
		if in.SourceType == nil {
			wanted.Sources = nil // those that were deleted meanwhile are no obstacle
		}
		return s.check(c, wanted)
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyEventSubscriptionResult{EventSubscription: shown(e, modifying)}, nil
}

func (s *service) change(ctx context.Context, c front.Call, name *string, change func(*topic.EventSubscription) error) (topic.EventSubscription, error) {
	var e topic.EventSubscription
	err := s.Retry(ctx, func() error {
		r, err := find(s.Cache, c.Scope, name)
		if err != nil {
			return err
		}
		e = r.Value
		if err := change(&e); err != nil {
			return err
		}
		return s.Commit(ctx, state.Swap(r.Key, r.Revision, e))
	})
	return e, err
}

// delete ends it: events that were raised before are delivered.
func (s *service) delete(ctx context.Context, c front.Call, in *rds.DeleteEventSubscriptionMessage) (*rds.DeleteEventSubscriptionResult, error) {
	var e topic.EventSubscription
	err := s.Retry(ctx, func() error {
		r, err := find(s.Cache, c.Scope, in.SubscriptionName)
		if err != nil {
			return err
		}
		e = r.Value
		return s.Commit(ctx, state.Remove(r.Key, r.Revision))
	})
	if err != nil {
		return nil, err
	}
	return &rds.DeleteEventSubscriptionResult{EventSubscription: shown(e, deleting)}, nil
}

// describeEventCategories lists what can be subscribed to.
func (s *service) describeEventCategories(_ context.Context, _ front.Call, in *rds.DescribeEventCategoriesMessage) (*rds.EventCategoriesMessage, error) {
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	wanted := event.SourceType(wire.Or(in.SourceType, ""))
	if wanted != "" && event.Categories(wanted) == nil {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid SourceType: %s.", wanted)
	}
	out := &rds.EventCategoriesMessage{EventCategoriesMapList: []rds.EventCategoriesMap{}}
	for _, t := range event.SourceTypes {
		if wanted == "" || wanted == t {
			out.EventCategoriesMapList = append(out.EventCategoriesMapList, rds.EventCategoriesMap{SourceType: wire.Some(string(t)), EventCategories: event.Categories(t)})
		}
	}
	return out, nil
}

// Tagged is an event subscription with its tags.
func Tagged(l *look.Look, scope spec.Scope, name string) (look.Tagged, error) {
	r, err := find(l.Cache, scope, &name)
	return look.Tagged{Tags: r.Value.Tags, Put: func(tags []spec.Tag) state.Op {
		e := r.Value
		e.Tags = tags
		return state.Swap(r.Key, r.Revision, e)
	}}, err
}

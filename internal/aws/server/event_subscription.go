package server

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

// maxAccountEventSubscriptions is that of event subscriptions over all regions.
const maxAccountEventSubscriptions = 10 * look.MaxEventSubscriptions

// The status words of event subscriptions. A subscription is active at once; the
// words in between are what RDS answers to the calls themselves.
const (
	subscriptionCreating  = "creating"
	subscriptionModifying = "modifying"
	subscriptionDeleting  = "deleting"
	subscriptionActive    = "active"
	subscriptionNoTopic   = "topic-not-exist"
)

var subscriptionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,253}$`)

// createEventSubscription has events published to a topic from now on.
func (s *Server) createEventSubscription(ctx context.Context, c front.Call, in *rds.CreateEventSubscriptionMessage) (*rds.CreateEventSubscriptionResult, error) {
	e := topic.EventSubscription{
		Scope: c.Scope, Name: strings.TrimSpace(wire.Or(in.SubscriptionName, "")), TopicARN: wire.Or(in.SnsTopicArn, ""), SourceType: event.SourceType(wire.Or(in.SourceType, "")),
		Sources: lowered(in.SourceIds), Categories: distinct(in.EventCategories), Enabled: wire.Or(in.Enabled, true), Tags: look.TagsIn(in.Tags), Created: c.Now,
	}
	if !subscriptionName.MatchString(e.Name) || strings.HasSuffix(e.Name, "-") || strings.Contains(e.Name, "--") {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "The parameter SubscriptionName is not a valid identifier: it must begin with a letter, "+
			"contain only letters, digits and hyphens, at most 254 of them, and not end with a hyphen or contain two consecutive hyphens.")
	}
	if err := spec.CheckTags(e.Tags); err != nil {
		return nil, err
	}
	err := s.client.Retry(ctx, func() error {
		if _, err := s.findEventSubscription(c, &e.Name); err == nil {
			return wire.NewError(rds.ErrSubscriptionAlreadyExist, "Event subscription %s already exists.", e.Name)
		}
		if len(s.eventSubscriptions(c)) >= look.MaxEventSubscriptions {
			return wire.NewError(rds.ErrEventSubscriptionQuotaExceeded, "An account can have at most %d event subscriptions in a region.", look.MaxEventSubscriptions)
		}
		if len(s.Cache.Keys(state.EventSubRoot+c.Account+"/")) >= maxAccountEventSubscriptions {
			return wire.NewError(rds.ErrEventSubscriptionQuotaExceeded, "An account can have at most %d event subscriptions in all regions together.", maxAccountEventSubscriptions)
		}
		if err := s.checkEventSubscription(c, e); err != nil {
			return err
		}
		return s.client.Commit(ctx, state.Swap(state.EventSub(c.Account, c.Region, e.Name), 0, e))
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateEventSubscriptionResult{EventSubscription: eventSubscriptionOut(e, subscriptionCreating)}, nil
}

func lowered(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = wire.Lower(&name)
	}
	return distinct(all)
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

func (s *Server) eventSubscriptions(c front.Call) []state.Record[topic.EventSubscription] {
	return state.LoadAll[topic.EventSubscription](s.Cache, state.EventSub(c.Account, c.Region, ""))
}

func (s *Server) findEventSubscription(c front.Call, name *string) (state.Record[topic.EventSubscription], error) {
	wanted := strings.TrimSpace(wire.Or(name, ""))
	r, err := state.Load[topic.EventSubscription](s.Cache, state.EventSub(c.Account, c.Region, wanted))
	if err != nil || wanted == "" {
		return r, look.OrBlank(wanted, "SubscriptionName", wire.NewError(rds.ErrSubscriptionNotFound, "Subscription %s not found.", wanted))
	}
	return r, nil
}

// checkEventSubscription checks what a subscription names.
func (s *Server) checkEventSubscription(c front.Call, e topic.EventSubscription) error {
	if err := s.checkEventTopic(c, e.TopicARN); err != nil {
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

// checkEventTopic: RDS publishes to topics of the account that owns the databases.
func (s *Server) checkEventTopic(c front.Call, arn string) error {
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

// checkSource: a source has to be there when it is added.
func (s *Server) checkSource(c front.Call, kind event.SourceType, name string) error {
	l := s.look(c.Account)
	var err error
	switch kind {
	case event.Instance:
		_, err = l.FindInstance(c.Scope, name)
	case event.Cluster:
		_, err = l.FindCluster(c.Scope, name)
	default:
		err = errNoSource
	}
	if err != nil || strings.Contains(name, ":") {
		return wire.NewError(rds.ErrSourceNotFound, "Source %s of the type %s not found: name it by its identifier.", name, kind)
	}
	return nil
}

// errNoSource: resources of that type do not exist in this version.
var errNoSource = wire.NewError(rds.ErrSourceNotFound, "Source not found.")

// describeEventSubscriptions lists event subscriptions, or shows one.
func (s *Server) describeEventSubscriptions(ctx context.Context, c front.Call, in *rds.DescribeEventSubscriptionsMessage) (*rds.EventSubscriptionsMessage, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	all := s.eventSubscriptions(c)
	if in.SubscriptionName != nil {
		one, err := s.findEventSubscription(c, in.SubscriptionName)
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
		out.EventSubscriptionsList = append(out.EventSubscriptionsList, *eventSubscriptionOut(r.Value, s.eventSubscriptionStatus(r.Value)))
	}
	return out, nil
}

// eventSubscriptionStatus: a topic may disappear, and come back.
func (s *Server) eventSubscriptionStatus(e topic.EventSubscription) string {
	scope, name, ok := topic.ParseARN(e.TopicARN)
	if _, err := state.Load[topic.Topic](s.Cache, state.Topic(scope.Account, scope.Region, name)); err != nil || !ok {
		return subscriptionNoTopic
	}
	return subscriptionActive
}

func eventSubscriptionOut(e topic.EventSubscription, status string) *rds.EventSubscription {
	return &rds.EventSubscription{
		CustomerAwsId: wire.Some(e.Account), CustSubscriptionId: wire.Some(e.Name), SnsTopicArn: wire.Some(e.TopicARN), Status: wire.Some(status),
		SubscriptionCreationTime: wire.Some(e.Created.UTC().Format("Mon Jan 02 15:04:05 MST 2006")), SourceType: wire.Text(string(e.SourceType)),
		SourceIdsList: wire.List(e.Sources), EventCategoriesList: wire.List(e.Categories), Enabled: wire.Some(e.Enabled), EventSubscriptionArn: wire.Some(e.ARN("es", e.Name)),
	}
}

// modifyEventSubscription changes what is published, and where. Sources have
// actions of their own.
func (s *Server) modifyEventSubscription(ctx context.Context, c front.Call, in *rds.ModifyEventSubscriptionMessage) (*rds.ModifyEventSubscriptionResult, error) {
	e, err := s.changeEventSubscription(ctx, c, in.SubscriptionName, func(e *topic.EventSubscription) error {
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
		return s.checkEventSubscription(c, wanted)
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyEventSubscriptionResult{EventSubscription: eventSubscriptionOut(e, subscriptionModifying)}, nil
}

func (s *Server) changeEventSubscription(ctx context.Context, c front.Call, name *string, change func(*topic.EventSubscription) error) (topic.EventSubscription, error) {
	var e topic.EventSubscription
	err := s.client.Retry(ctx, func() error {
		r, err := s.findEventSubscription(c, name)
		if err != nil {
			return err
		}
		e = r.Value
		if err := change(&e); err != nil {
			return err
		}
		return s.client.Commit(ctx, state.Swap(r.Key, r.Revision, e))
	})
	return e, err
}

// deleteEventSubscription ends it: events that were raised before are delivered.
func (s *Server) deleteEventSubscription(ctx context.Context, c front.Call, in *rds.DeleteEventSubscriptionMessage) (*rds.DeleteEventSubscriptionResult, error) {
	var e topic.EventSubscription
	err := s.client.Retry(ctx, func() error {
		r, err := s.findEventSubscription(c, in.SubscriptionName)
		if err != nil {
			return err
		}
		e = r.Value
		return s.client.Commit(ctx, state.Remove(r.Key, r.Revision))
	})
	if err != nil {
		return nil, err
	}
	return &rds.DeleteEventSubscriptionResult{EventSubscription: eventSubscriptionOut(e, subscriptionDeleting)}, nil
}

// addSource adds a source to a subscription; one that it has is no error.
func (s *Server) addSource(ctx context.Context, c front.Call, in *rds.AddSourceIdentifierToSubscriptionMessage) (*rds.AddSourceIdentifierToSubscriptionResult, error) {
	e, err := s.changeEventSubscription(ctx, c, in.SubscriptionName, func(e *topic.EventSubscription) error {
		if e.SourceType == "" {
			return wire.NewError(api.ErrInvalidParameterCombination, "The event subscription %s has no SourceType: set one before you add sources.", e.Name)
		}
		name := wire.Lower(in.SourceIdentifier)
		if err := s.checkSource(c, e.SourceType, name); err != nil {
			return err
		}
		e.Sources = lowered(append(slices.Clone(e.Sources), name))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &rds.AddSourceIdentifierToSubscriptionResult{EventSubscription: eventSubscriptionOut(e, subscriptionModifying)}, nil
}

// removeSource takes a source away. The last one stays: without it the
// subscription would be one to all sources.
func (s *Server) removeSource(ctx context.Context, c front.Call, in *rds.RemoveSourceIdentifierFromSubscriptionMessage) (*rds.RemoveSourceIdentifierFromSubscriptionResult, error) {
	e, err := s.changeEventSubscription(ctx, c, in.SubscriptionName, func(e *topic.EventSubscription) error {
		name := wire.Lower(in.SourceIdentifier)
		if !slices.Contains(e.Sources, name) {
			return wire.NewError(rds.ErrSourceNotFound, "Source %s is not part of the event subscription %s.", name, e.Name)
		}
		if len(e.Sources) == 1 {
			return wire.NewError(api.ErrInvalidParameterCombination,
				"The source %s is the last one of the event subscription %s, which would then be one to all sources: delete the subscription, or add another source first.", name, e.Name)
		}
		e.Sources = slices.DeleteFunc(slices.Clone(e.Sources), func(have string) bool { return have == name })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &rds.RemoveSourceIdentifierFromSubscriptionResult{EventSubscription: eventSubscriptionOut(e, subscriptionModifying)}, nil
}

// describeEventCategories lists what can be subscribed to.
func (s *Server) describeEventCategories(_ context.Context, _ front.Call, in *rds.DescribeEventCategoriesMessage) (*rds.EventCategoriesMessage, error) {
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

// taggedEventSubscription finds the tags of an event subscription.
func (l *sight) taggedEventSubscription(scope spec.Scope, name string) (look.Tagged, error) {
	r, err := l.s.findEventSubscription(front.Call{Scope: scope}, &name)
	return look.Tagged{Tags: r.Value.Tags, Put: func(tags []spec.Tag) state.Op {
		e := r.Value
		e.Tags = tags
		return state.Swap(r.Key, r.Revision, e)
	}}, err
}

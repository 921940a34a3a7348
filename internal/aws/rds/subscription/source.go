package subscription

import (
	"context"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/wire"
	"howdah/internal/model/event"
	"howdah/internal/model/topic"
)

// addSource adds a source to a subscription; one that it has is no error.
func (s *service) addSource(ctx context.Context, c front.Call, in *rds.AddSourceIdentifierToSubscriptionMessage) (*rds.AddSourceIdentifierToSubscriptionResult, error) {
	e, err := s.change(ctx, c, in.SubscriptionName, func(e *topic.EventSubscription) error {
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
	return &rds.AddSourceIdentifierToSubscriptionResult{EventSubscription: shown(e, modifying)}, nil
}

// removeSource takes a source away. The last one stays: without it the subscription would be
// one to all sources.
func (s *service) removeSource(ctx context.Context, c front.Call, in *rds.RemoveSourceIdentifierFromSubscriptionMessage) (*rds.RemoveSourceIdentifierFromSubscriptionResult, error) {
	e, err := s.change(ctx, c, in.SubscriptionName, func(e *topic.EventSubscription) error {
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
	return &rds.RemoveSourceIdentifierFromSubscriptionResult{EventSubscription: shown(e, modifying)}, nil
}

// checkSource refuses a source that is not there.
func (s *service) checkSource(c front.Call, kind event.SourceType, name string) error {
	l := s.looks.Of(c.Account)
	var err error
	switch kind {
	case event.Instance:
		_, err = l.FindInstance(c.Scope, name)
	case event.Cluster:
		_, err = l.FindCluster(c.Scope, name)
	case event.Snapshot:
		_, err = snapshot.Instance.Find(s.looks, c.Scope, name)
	case event.ClusterSnapshot:
		_, err = snapshot.Cluster.Find(s.looks, c.Scope, name)
	default:
		err = errNoSource
	}
	if err != nil || strings.HasPrefix(name, "arn:") {
		return wire.NewError(rds.ErrSourceNotFound, "Source %s of the type %s not found: name it by its identifier.", name, kind)
	}
	return nil
}

// errNoSource is about resources of a type that does not exist in this version.
var errNoSource = wire.NewError(rds.ErrSourceNotFound, "Source not found.")

func lowered(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = wire.Lower(&name)
	}
	return distinct(all)
}

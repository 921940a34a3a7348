package rds

import (
	"context"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/automated"
	"howdah/internal/aws/rds/cluster"
	"howdah/internal/aws/rds/endpoint"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/instance"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/option"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/rds/subnet"
	"howdah/internal/aws/rds/subscription"
	"howdah/internal/aws/wire"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// tags has the handlers of the actions on tags of all kinds of resources.
type tags struct {
	*state.Client
	looks *look.Source
}

// actions are those on tags.
func (s *tags) actions() map[string]front.Action {
	return map[string]front.Action{
		"AddTagsToResource":      front.On(s.addTagsToResource),
		"ListTagsForResource":    front.On(s.listTagsForResource),
		"RemoveTagsFromResource": front.On(s.removeTagsFromResource),
	}
}

// listTagsForResource answers the tags of a resource, named by its ARN.
func (s *tags) listTagsForResource(ctx context.Context, c front.Call, in *rds.ListTagsForResourceMessage) (*rds.TagListMessage, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	t, err := tagged(s.looks.Of(c.Account), c.Scope, wire.Or(in.ResourceName, ""))
	if err != nil {
		return nil, err
	}
	return &rds.TagListMessage{TagList: look.TagsOut(t.Tags)}, nil
}

// addTagsToResource adds tags, or changes their values. A changed setting acts at once: it is
// part of what is wanted.
func (s *tags) addTagsToResource(ctx context.Context, c front.Call, in *rds.AddTagsToResourceMessage) (*front.Void, error) {
	if err := spec.CheckTags(look.TagsIn(in.Tags)); err != nil {
		return nil, err
	}
	return nil, s.changeTags(ctx, c, wire.Or(in.ResourceName, ""), func(tags []spec.Tag) []spec.Tag {
		return spec.MergeTags(tags, look.TagsIn(in.Tags))
	})
}

// removeTagsFromResource removes tags by their keys; keys that are not there do not matter.
func (s *tags) removeTagsFromResource(ctx context.Context, c front.Call, in *rds.RemoveTagsFromResourceMessage) (*front.Void, error) {
	return nil, s.changeTags(ctx, c, wire.Or(in.ResourceName, ""), func(tags []spec.Tag) []spec.Tag {
		return spec.RemoveTags(tags, in.TagKeys)
	})
}

func (s *tags) changeTags(ctx context.Context, c front.Call, arn string, change func([]spec.Tag) []spec.Tag) error {
	return s.Retry(ctx, func() error {
		t, err := tagged(s.looks.Of(c.Account), c.Scope, arn)
		if err != nil {
			return err
		}
		if t.Gone != nil {
			return t.Gone
		}
		tags := change(t.Tags)
		if err := spec.CheckTags(tags); err != nil {
			return err
		}
		return s.Commit(ctx, t.Put(tags))
	})
}

// colons are the kinds of resources whose names may have a colon, of those that RDS makes itself.
var colons = []string{"og", snapshot.Instance.ARN, snapshot.Cluster.ARN}

// tagged finds a resource by its ARN, wherever the finder of its kind is.
func tagged(l *look.Look, scope spec.Scope, arn string) (look.Tagged, error) {
	parts := strings.SplitN(strings.TrimSpace(arn), ":", 7)
	if len(parts) != 7 || parts[0] != "arn" || parts[2] != "rds" || !slices.Contains(colons, parts[5]) && strings.Contains(parts[6], ":") {
		return look.Tagged{}, wire.NewError(api.ErrInvalidParameterValue, "Invalid resource name: %s", arn)
	}
	if parts[3] != scope.Region || parts[4] != scope.Account {
		return look.Tagged{}, wire.NewError(api.ErrInvalidParameterValue, "The specified resource name does not match an RDS resource in this region.")
	}
	switch parts[5] {
	case "db":
		return instance.Tagged(l, scope, arn)
	case "cluster":
		return cluster.Tagged(l, scope, arn)
	case "cluster-endpoint":
		return endpoint.Tagged(l, scope, arn)
	case spec.GroupKind[param.Instance]:
		return group.Tagged(l, scope, param.Instance, arn)
	case spec.GroupKind[param.Cluster]:
		return group.Tagged(l, scope, param.Cluster, arn)
	case "es":
		return subscription.Tagged(l, scope, parts[6])
	case automated.Instance.ARN:
		return automated.Instance.Tagged(l, scope, arn)
	case automated.Cluster.ARN:
		return automated.Cluster.Tagged(l, scope, arn)
	case snapshot.Instance.ARN:
		return snapshot.Instance.Tagged(l, scope, arn)
	case snapshot.Cluster.ARN:
		return snapshot.Cluster.Tagged(l, scope, arn)
	case "subgrp":
		return subnet.Tagged(l, scope, arn)
	case "og":
		return option.Tagged(l, scope, parts[6])
	}
	return look.Tagged{}, wire.NewError(api.ErrInvalidParameterValue, "The specified resource name does not match an RDS resource in this region.")
}

// Package ec2 is the part of EC2 that decides who may connect to databases, with the one network of
// a home: security groups with their rules, a VPC, and a subnet for each zone.
package ec2

import (
	"context"
	"reflect"

	"howdah/api"
	"howdah/api/ec2"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/wire"
	"howdah/internal/model/network"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Config is what the service needs. All fields are required.
type Config struct {
	State *state.Client
	// Block is the CIDR of the home's one network.
	Block string
	// Zones returns the zones in which the home has hosts, in order. The caller must not alter the
	// list.
	Zones func() []string
	// User names in words a database that is in a group. It returns "" if there is none.
	User func(scope spec.Scope, group string) string
}

// service has the handlers.
type service struct {
	*state.Client
	block string
	zones func() []string
	user  func(scope spec.Scope, group string) string
}

// Service returns what package front needs to know of it.
func Service(cfg Config) *front.Service {
	s := &service{cfg.State, cfg.Block, cfg.Zones, cfg.User}
	return &front.Service{
		Name: ec2.Service.Name, Contract: &ec2.Service, Errors: ownCode,
		Resources: s.resources, Context: requestTags, Describe: s.describe,
		Actions: map[string]front.Action{
			"AuthorizeSecurityGroupIngress": on(s.authorizeIngress),
			"CreateSecurityGroup":           on(s.createSecurityGroup),
			"DeleteSecurityGroup":           on(s.deleteSecurityGroup),
			"DescribeSecurityGroupRules":    on(s.describeSecurityGroupRules),
			"DescribeSecurityGroups":        on(s.describeSecurityGroups),
			"DescribeSubnets":               on(s.describeSubnets),
			"DescribeVpcs":                  on(s.describeVpcs),
			"RevokeSecurityGroupIngress":    on(s.revokeIngress),
		},
	}
}

// on returns an action of a handler. The handler is not called for a dry run: a caller that gets
// there may do the action.
func on[In, Out any](handler func(context.Context, front.Call, *In) (*Out, error)) front.Action {
	return front.On(func(ctx context.Context, c front.Call, in *In) (*Out, error) {
		if dry, ok := reflect.ValueOf(in).Elem().FieldByName("DryRun").Interface().(*bool); ok && wire.Or(dry, false) {
			return nil, wire.NewError(ec2.ErrDryRunOperation, "Request would have succeeded, but DryRun flag is set.")
		}
		return handler(ctx, c, in)
	})
}

// codes is what EC2 calls errors that other services have under another name.
var codes = map[string]string{
	api.ErrAccessDenied: ec2.ErrUnauthorizedOperation, api.ErrInvalidClientTokenID: ec2.ErrAuthFailure,
	api.ErrSignatureDoesNotMatch: ec2.ErrAuthFailure, api.ErrMissingAuthenticationToken: ec2.ErrAuthFailure,
}

// ownCode gives an error the code that EC2 has for it.
func ownCode(known *wire.Error) *wire.Error {
	code, other := codes[known.Code]
	if !other {
		return known
	}
	return wire.NewError(code, "%s", known.Message)
}

// checkVPC refuses any network except the home's one. It need not be named.
func checkVPC(id *string) error {
	if wire.Or(id, network.VPC) != network.VPC {
		return wire.NewError(ec2.ErrInvalidVpcIDNotFound, "The vpc ID '%s' does not exist: this home has %s.", *id, network.VPC)
	}
	return nil
}

// addTags adds the attributes by which filters find tags.
func addTags(attributes map[string][]string, tags []spec.Tag) {
	for _, t := range tags {
		attributes["tag:"+t.Key] = []string{t.Value}
		attributes["tag-key"] = append(attributes["tag-key"], t.Key)
	}
}

func tagsOut(in []spec.Tag) []ec2.Tag {
	tags := make([]ec2.Tag, len(in))
	for i, t := range in {
		tags[i] = ec2.Tag{Key: wire.Some(t.Key), Value: wire.Some(t.Value)}
	}
	return tags
}

// tagsIn returns the tags for what is being made, of one kind.
func tagsIn(in []ec2.TagSpecification, kind string) ([]spec.Tag, error) {
	var tags []spec.Tag
	for _, s := range in {
		if wire.Or(s.ResourceType, "") != kind {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "'%s' is not a valid taggable resource type for this operation: ResourceType in TagSpecifications is %s.", wire.Or(s.ResourceType, ""), kind)
		}
		for _, t := range s.Tags {
			tags = append(tags, spec.Tag{Key: wire.Or(t.Key, ""), Value: wire.Or(t.Value, "")})
		}
	}
	return tags, spec.CheckTags(tags)
}

// pageOf returns one page of a list that is sorted by key. Without a size it returns the whole
// rest. named says that the request names what it wants.
func pageOf[T any](all []T, key func(T) string, size *int32, token *string, named string) ([]T, *string, error) {
	if size != nil && named != "" {
		return nil, nil, wire.NewError(api.ErrInvalidParameterCombination, "The parameter %s cannot be used with the parameter MaxResults", named)
	}
	if wire.Or(token, "") != "" {
		after, err := page.After(*token)
		if err != nil {
			return nil, nil, wire.NewError(api.ErrInvalidParameterValue, "The parameter NextToken is invalid: use the one of an earlier answer, unchanged.")
		}
		var rest []T
		for _, v := range all {
			if key(v) > after {
				rest = append(rest, v)
			}
		}
		all = rest
	}
	if n := int(wire.Or(size, 0)); n > 0 && len(all) > n {
		return wire.List(all[:n]), wire.Some(page.Marker(key(all[n-1]))), nil
	}
	return wire.List(all), nil, nil
}

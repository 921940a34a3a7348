package server

import (
	"context"
	"reflect"
	"strings"

	"howdah/api"
	"howdah/api/ec2"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/wire"
	"howdah/internal/model/network"
	"howdah/internal/model/spec"
)

// ec2Service is what Howdah does of EC2: the rules on who may connect to databases,
// and the one network that a home has.
func (s *Server) ec2Service() *front.Service {
	return &front.Service{
		Name: ec2.Service.Name, Contract: &ec2.Service, Errors: ec2Error,
		Resources: s.ec2Resources, Context: ec2Context, Describe: s.describeSecurityGroup,
		Actions: map[string]front.Action{
			"AuthorizeSecurityGroupIngress": onEC2(s.authorizeIngress),
			"CreateSecurityGroup":           onEC2(s.createSecurityGroup),
			"DeleteSecurityGroup":           onEC2(s.deleteSecurityGroup),
			"DescribeSecurityGroupRules":    onEC2(s.describeSecurityGroupRules),
			"DescribeSecurityGroups":        onEC2(s.describeSecurityGroups),
			"DescribeSubnets":               onEC2(s.describeSubnets),
			"DescribeVpcs":                  onEC2(s.describeVpcs),
			"RevokeSecurityGroupIngress":    onEC2(s.revokeIngress),
		},
	}
}

// onEC2 makes an action of a handler, which is not asked for a dry run: whoever gets
// there may do the action.
func onEC2[In, Out any](handler func(context.Context, call, *In) (*Out, error)) front.Action {
	return front.On(func(ctx context.Context, c call, in *In) (*Out, error) {
		if dry, ok := reflect.ValueOf(in).Elem().FieldByName("DryRun").Interface().(*bool); ok && or(dry, false) {
			return nil, wire.NewError(ec2.ErrDryRunOperation, "Request would have succeeded, but DryRun flag is set.")
		}
		return handler(ctx, c, in)
	})
}

// ec2Code is what EC2 calls errors that other services have under another name.
var ec2Code = map[string]string{
	api.ErrAccessDenied: ec2.ErrUnauthorizedOperation, api.ErrInvalidClientTokenID: ec2.ErrAuthFailure,
	api.ErrSignatureDoesNotMatch: ec2.ErrAuthFailure, api.ErrMissingAuthenticationToken: ec2.ErrAuthFailure,
}

func ec2Error(known *wire.Error) *wire.Error {
	code, other := ec2Code[known.Code]
	if !other {
		return known
	}
	return wire.NewError(code, "%s", known.Message)
}

// checkVPC: a home has one network, which needs not be named.
func checkVPC(id *string) error {
	if or(id, network.VPC) != network.VPC {
		return wire.NewError(ec2.ErrInvalidVpcIDNotFound, "The vpc ID '%s' does not exist: this home has %s.", *id, network.VPC)
	}
	return nil
}

// ec2Filters are the conditions of a Describe action; values may hold * and ?.
type ec2Filters []filter

// readEC2Filters checks names and values of filters. Names that end in : stand for
// all that begin so.
func readEC2Filters(in []ec2.Filter, known ...string) (ec2Filters, error) {
	var all ec2Filters
	for _, f := range in {
		name := or(f.Name, "")
		if !knownFilter(name, known) {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "The filter '%s' is invalid", name)
		}
		if len(f.Values) == 0 {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "The filter '%s' must have at least one value.", name)
		}
		all = append(all, filter{name, f.Values})
	}
	return all, nil
}

func knownFilter(name string, known []string) bool {
	for _, k := range known {
		family := strings.HasSuffix(k, ":")
		if !family && name == k || family && len(name) > len(k) && strings.HasPrefix(name, k) {
			return true
		}
	}
	return false
}

// match: every filter has a value that the resource has.
func (all ec2Filters) match(attributes map[string][]string) bool {
	for _, f := range all {
		found := false
		for _, value := range f.values {
			for _, a := range attributes[f.name] {
				found = found || like(value, a)
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// like compares a text with a pattern, in which * stands for any characters and ?
// for one.
func like(pattern, text string) bool {
	star, mark, p, t := -1, 0, 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark, p = p, t, p+1
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			p, mark, t = star+1, mark+1, mark+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// addTags are the attributes by which filters find tags.
func addTags(attributes map[string][]string, tags []spec.Tag) {
	for _, t := range tags {
		attributes["tag:"+t.Key] = []string{t.Value}
		attributes["tag-key"] = append(attributes["tag-key"], t.Key)
	}
}

func ec2TagsOut(in []spec.Tag) []ec2.Tag {
	tags := make([]ec2.Tag, len(in))
	for i, t := range in {
		tags[i] = ec2.Tag{Key: some(t.Key), Value: some(t.Value)}
	}
	return tags
}

// ec2TagsIn are the tags for what is being made, of one kind.
func ec2TagsIn(in []ec2.TagSpecification, kind string) ([]spec.Tag, error) {
	var tags []spec.Tag
	for _, s := range in {
		if or(s.ResourceType, "") != kind {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "'%s' is not a valid taggable resource type for this operation: ResourceType in TagSpecifications is %s.", or(s.ResourceType, ""), kind)
		}
		for _, t := range s.Tags {
			tags = append(tags, spec.Tag{Key: or(t.Key, ""), Value: or(t.Value, "")})
		}
	}
	return tags, spec.CheckTags(tags)
}

// ec2Page takes one page out of a list that is sorted by key. Without a size it is
// the whole rest; named tells that the request names what it wants.
func ec2Page[T any](all []T, key func(T) string, size *int32, token *string, named string) ([]T, *string, error) {
	if size != nil && named != "" {
		return nil, nil, wire.NewError(api.ErrInvalidParameterCombination, "The parameter %s cannot be used with the parameter MaxResults", named)
	}
	if or(token, "") != "" {
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
	if n := int(or(size, 0)); n > 0 && len(all) > n {
		return list(all[:n]), some(page.Marker(key(all[n-1]))), nil
	}
	return list(all), nil, nil
}

package front

import (
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/iam"
	"howdah/internal/model/spec"
)

// authorize refuses an action if the caller's policies do not allow it on each of the resources
// that the request names. in is the decoded request.
func (f *Front) authorize(s *Service, c Call, in any) error {
	if len(c.Who.Policies) == 0 {
		return nil
	}
	var named []string
	if s.Resources != nil {
		named = s.Resources(c, in)
	}
	if len(named) == 0 {
		named = []string{"*"}
	}
	asked := c.Context(in)
	for _, resource := range named {
		context, known := c.About(resource, asked)
		if err := c.May(resource, context, known); err != nil {
			return err
		}
	}
	return nil
}

// Context returns the values of condition keys that the request itself has. in is a pointer to the
// request, or nil.
func (c Call) Context(in any) map[string][]string {
	all := map[string][]string{
		"aws:CurrentTime": {c.Now.Format(time.RFC3339)}, "aws:PrincipalAccount": {c.Account}, "aws:RequestedRegion": {c.Region},
		"aws:SecureTransport": {strconv.FormatBool(c.Secure)}, "aws:SourceIp": {c.Source},
		"aws:userid": {c.Who.ID}, "aws:username": {c.Who.Name},
	}
	Each(in, func(name string, value reflect.Value) {
		if keys, ok := value.Interface().([]string); ok && name == tagKeys {
			all["aws:TagKeys"] = keys
		}
	})
	service, _, _ := strings.Cut(c.Action, ":")
	if s := c.service(service); s != nil && s.Context != nil {
		s.Context(c, in, all)
	}
	return all
}

// tagKeys is the parameter of all services that names tags to be removed.
const tagKeys = "TagKeys"

// RequestTag adds a tag that a request gives.
func RequestTag(all map[string][]string, key, value string) {
	all["aws:RequestTag/"+key] = []string{value}
	all["aws:TagKeys"] = append(all["aws:TagKeys"], key)
}

// ResourceTags adds the tags that a resource has, also under the other prefixes that conditions of
// its service use.
func ResourceTags(all map[string][]string, tags []spec.Tag, prefixes ...string) {
	for _, tag := range tags {
		all["aws:ResourceTag/"+tag.Key] = []string{tag.Value}
		for _, prefix := range prefixes {
			all[prefix+tag.Key] = []string{tag.Value}
		}
	}
}

// About adds what an existing resource has to what a request has: the resource's tags, and what the
// request does not change of it. It looks where the resource's ARN says, in whichever region that
// is. known is false if it cannot look there. Then nobody can tell the resource's tags.
func (c Call) About(resource string, asked map[string][]string) (all map[string][]string, known bool) {
	all = maps.Clone(asked)
	if namesNothing(resource) {
		return all, true
	}
	parts := strings.SplitN(resource, ":", 7)
	if len(parts) < 6 || parts[4] != c.Account {
		return all, false
	}
	s := c.service(parts[2])
	if s == nil || s.Describe == nil {
		return all, false
	}
	return all, s.Describe(all, spec.Scope{Account: parts[4], Region: parts[3]}, resource)
}

// namesNothing reports whether an action names no resource that could have tags: it is about
// everything, or about everything of a kind, or about a role, which has none here.
func namesNothing(resource string) bool {
	return resource == "*" || strings.HasPrefix(resource, "arn:aws:iam::") || strings.HasSuffix(resource, ":*") || strings.HasSuffix(resource, "/*")
}

// service returns a service by its name, or nil.
func (c Call) service(name string) *Service {
	if c.front == nil {
		return nil
	}
	return c.front.services[name]
}

// request returns what policies are asked about one resource. known is false if nobody could find
// out what the resource is like.
func (c Call) request(resource string, context map[string][]string, known bool) iam.Request {
	anyCase := false
	if parts := strings.SplitN(resource, ":", 4); len(parts) == 4 && parts[0] == "arn" && parts[1] == "aws" {
		s := c.service(parts[2])
		anyCase = s != nil && s.AnyCase
	}
	return iam.Request{Action: c.Action, Resource: resource, AnyCase: anyCase, Context: context, Blind: !known}
}

// May asks all policies of the caller about one resource.
func (c Call) May(resource string, context map[string][]string, known bool) error {
	for _, p := range c.Who.Policies {
		switch p.Decide(c.request(resource, context, known)) {
		case iam.Allowed:
		case iam.Denied:
			return c.explicitlyDenied(resource)
		default:
			return c.Denied(resource, "because no identity-based policy allows the "+c.Action+" action")
		}
	}
	return nil
}

// Spared refuses what a policy denies on one resource, if the action as such is already allowed.
func (c Call) Spared(resource string) error {
	if len(c.Who.Policies) == 0 {
		return nil
	}
	context, known := c.About(resource, c.Context(nil))
	for _, p := range c.Who.Policies {
		if p.Decide(c.request(resource, context, known)) == iam.Denied {
			return c.explicitlyDenied(resource)
		}
	}
	return nil
}

func (c Call) explicitlyDenied(resource string) error {
	return c.Denied(resource, "with an explicit deny in an identity-based policy")
}

// Denied returns the error for what the caller may not do.
func (c Call) Denied(resource, why string) error {
	return wire.NewError(api.ErrAccessDenied, "User: %s is not authorized to perform: %s on resource: %s %s", c.Who.ARN, c.Action, resource, why)
}

// Each calls do for the members of a request that were given. in is a pointer to the request, or
// nil.
func Each(in any, do func(name string, value reflect.Value)) {
	v := reflect.ValueOf(in)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return
	}
	v = v.Elem()
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsNil() {
			do(v.Type().Field(i).Name, f)
		}
	}
}

package ec2

import (
	"reflect"
	"strings"

	"howdah/api/ec2"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/network"
	"howdah/internal/model/spec"
)

// resources returns the ARNs of the groups that a request names, by their ids or by their names.
func (s *service) resources(c front.Call, in any) []string {
	var found []string
	front.Each(in, func(name string, value reflect.Value) {
		var texts []string
		switch v := value.Interface().(type) {
		case *string:
			texts = []string{*v}
		case []string:
			texts = v
		}
		for _, text := range texts {
			switch name {
			case "GroupId", "GroupIds":
				found = append(found, network.ARN(c.Scope, "security-group", text))
			case "GroupName", "GroupNames":
				if g, err := s.groupNamed(c.Scope, text); err == nil && c.Action != "ec2:CreateSecurityGroup" {
					found = append(found, g.ARN())
				}
			}
		}
	})
	if len(found) == 0 && c.Action == "ec2:CreateSecurityGroup" {
		return []string{network.ARN(c.Scope, "security-group", "*")}
	}
	return found
}

// requestTags adds the tags that a request gives.
func requestTags(_ front.Call, in any, all map[string][]string) {
	front.Each(in, func(_ string, value reflect.Value) {
		specifications, _ := value.Interface().([]ec2.TagSpecification)
		for _, s := range specifications {
			for _, t := range s.Tags {
				front.RequestTag(all, wire.Or(t.Key, ""), wire.Or(t.Value, ""))
			}
		}
	})
}

// describe adds the tags of a group. ok is false if nobody can tell them.
func (s *service) describe(all map[string][]string, scope spec.Scope, arn string) (ok bool) {
	id, ok := strings.CutPrefix(arn, network.ARN(scope, "security-group", ""))
	if !ok {
		return false
	}
	if g, exists := s.book(scope).Find(scope, id); exists {
		front.ResourceTags(all, g.Tags)
	}
	return true
}

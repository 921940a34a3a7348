package server

import (
	"errors"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"howdah/api"
	"howdah/api/ec2"
	"howdah/api/rds"
	"howdah/api/sns"
	"howdah/internal/aws/wire"
	"howdah/internal/model/network"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// conditionKeys are what parameters are called in conditions.
var conditionKeys = map[string]string{
	"DBInstanceClass": "rds:DatabaseClass", "DBClusterInstanceClass": "rds:DatabaseClass", "Engine": "rds:DatabaseEngine",
	"DBName": "rds:DatabaseName", "DatabaseName": "rds:DatabaseName", "MultiAZ": "rds:MultiAz", "Iops": "rds:Piops",
	"StorageEncrypted": "rds:StorageEncrypted", "AllocatedStorage": "rds:StorageSize",
}

// context are the values of condition keys that the request itself has.
func (c call) context(in any) map[string][]string {
	all := map[string][]string{
		"aws:CurrentTime": {c.now.Format(time.RFC3339)}, "aws:PrincipalAccount": {c.Account}, "aws:RequestedRegion": {c.Region},
		"aws:SecureTransport": {strconv.FormatBool(c.secure)}, "aws:SourceIp": {c.source},
		"aws:userid": {c.who.id}, "aws:username": {c.who.name},
	}
	if c.action == "rds:CreateDBInstance" {
		all["rds:MultiAz"], all["rds:StorageEncrypted"] = []string{"false"}, []string{"false"}
	}
	each(in, func(name string, value reflect.Value) {
		switch v := value.Interface().(type) {
		case []rds.Tag:
			for _, t := range v {
				key, text := or(t.Key, ""), or(t.Value, "")
				all["aws:RequestTag/"+key], all["rds:req-tag/"+key] = []string{text}, []string{text}
				all["aws:TagKeys"] = append(all["aws:TagKeys"], key)
			}
		case []sns.Tag:
			for _, t := range v {
				all["aws:RequestTag/"+or(t.Key, "")] = []string{or(t.Value, "")}
				all["aws:TagKeys"] = append(all["aws:TagKeys"], or(t.Key, ""))
			}
		case []ec2.TagSpecification:
			for _, s := range v {
				for _, t := range s.Tags {
					all["aws:RequestTag/"+or(t.Key, "")] = []string{or(t.Value, "")}
					all["aws:TagKeys"] = append(all["aws:TagKeys"], or(t.Key, ""))
				}
			}
		case []string:
			if name == "TagKeys" {
				all["aws:TagKeys"] = v
			}
		default:
			if key := conditionKeys[name]; key != "" {
				all[key] = []string{scalarText(value)}
			}
		}
	})
	return all
}

func scalarText(value reflect.Value) string {
	switch v := value.Interface().(type) {
	case *string:
		return *v
	case *bool:
		return strconv.FormatBool(*v)
	case *int32:
		return strconv.Itoa(int(*v))
	}
	return ""
}

// contextOf adds the values that a resource which exists has: its tags, and what
// the request does not change of it. It is looked for where its ARN says, in whichever
// region that is. known is false where that cannot be looked up: then nobody can tell
// its tags.
func (l *look) contextOf(c call, resource string, asked map[string][]string) (all map[string][]string, known bool) {
	all = maps.Clone(asked)
	if namesNothing(resource) {
		return all, true
	}
	parts := strings.SplitN(resource, ":", 7)
	if len(parts) < 6 || parts[4] != c.Account {
		return all, false
	}
	scope := spec.Scope{Account: parts[4], Region: parts[3]}
	switch parts[2] {
	case topicService:
		return all, l.addTopic(all, scope, resource)
	case groupService:
		return all, l.addSecurityGroup(all, scope, resource)
	}
	return all, l.addResource(all, scope, resource)
}

// namesNothing: an action on everything, or on everything of a kind, names no resource
// that could have tags.
func namesNothing(resource string) bool {
	return resource == "*" || strings.HasSuffix(resource, ":*") || strings.HasSuffix(resource, "/*")
}

// The services of ARNs that are not RDS's.
const (
	topicService = "sns"
	groupService = "ec2"
)

// giveTags adds a resource's tags under each of the prefixes that conditions know them by.
func giveTags(all map[string][]string, tags []spec.Tag, prefixes ...string) {
	for _, tag := range tags {
		for _, prefix := range prefixes {
			all[prefix+tag.Key] = []string{tag.Value}
		}
	}
}

const resourceTag = "aws:ResourceTag/"

// addTopic adds the tags of a topic; ok is false where nobody can tell them.
func (s *Server) addTopic(all map[string][]string, scope spec.Scope, arn string) (ok bool) {
	in, name, ok := topic.ParseARN(arn)
	if !ok || in != scope {
		return false
	}
	r, err := state.Load[topic.Topic](s.Cache, state.Topic(in.Account, in.Region, name))
	giveTags(all, r.Value.Tags, resourceTag)
	return err == nil || errors.Is(err, state.ErrNotFound)
}

// addSecurityGroup adds the tags of a group; ok is false where nobody can tell them.
func (s *Server) addSecurityGroup(all map[string][]string, scope spec.Scope, arn string) (ok bool) {
	id, ok := strings.CutPrefix(arn, network.ARN(scope, "security-group", ""))
	if !ok {
		return false
	}
	if g, exists := s.securityBook(scope).Find(scope, id); exists {
		giveTags(all, g.Tags, resourceTag)
	}
	return true
}

// addResource adds what a resource of RDS has; ok is false where nobody can tell: of a
// kind, or an ARN, that is not known here.
func (l *look) addResource(all map[string][]string, scope spec.Scope, arn string) (ok bool) {
	t, err := l.tagged(scope, arn)
	if invalid, is := errors.AsType[*wire.Error](err); is && invalid.Code == api.ErrInvalidParameterValue {
		return false
	}
	if err != nil {
		return true // there is no such thing, as where it is about to be made
	}
	kind := strings.Split(arn, ":")[5]
	giveTags(all, t.tags, resourceTag, "rds:"+kind+"-tag/")
	add := func(key, value string) {
		if _, given := all[key]; !given && value != "" {
			all[key] = []string{value}
		}
	}
	if i, err := l.findInstance(scope, arn); err == nil && kind == "db" {
		addInstance(add, l.inherit(i.Value))
	}
	if found, err := l.findCluster(scope, arn); err == nil && kind == "cluster" {
		add("rds:DatabaseEngine", found.Value.Engine)
		add("rds:DatabaseName", found.Value.DBName)
		add("rds:DatabaseClass", found.Value.Class)
	}
	return true
}

func addInstance(add func(key, value string), i spec.Instance) {
	add("rds:DatabaseClass", i.Class)
	add("rds:DatabaseEngine", i.Engine)
	add("rds:DatabaseName", i.DBName)
	add("rds:MultiAz", strconv.FormatBool(i.MultiAZ))
	add("rds:StorageEncrypted", strconv.FormatBool(i.StorageKey != ""))
	add("rds:StorageSize", strconv.Itoa(i.Storage))
	if i.IOPS > 0 {
		add("rds:Piops", strconv.Itoa(i.IOPS))
	}
}

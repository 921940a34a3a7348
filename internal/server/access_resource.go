package server

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/api/ec2"
	"howdah/api/rds"
	"howdah/api/sns"
	"howdah/internal/network"
	"howdah/internal/spec"
	"howdah/internal/state"
	"howdah/internal/topic"
)

// kindOf are the kinds of resources, as in ARNs, that parameters name.
var kindOf = map[string]string{
	"DBInstanceIdentifier": "db", "NewDBInstanceIdentifier": "db", "SourceDBInstanceIdentifier": "db",
	"TargetDBInstanceIdentifier": "db",
	"DBClusterIdentifier":        "cluster", "NewDBClusterIdentifier": "cluster", "SourceDBClusterIdentifier": "cluster",
	"DBClusterEndpointIdentifier": "cluster-endpoint",
	"DBSubnetGroupName":           "subgrp",
	"OptionGroupName":             "og", "SourceOptionGroupIdentifier": "og", "TargetOptionGroupIdentifier": "og",
	"DBParameterGroupName": "pg", "SourceDBParameterGroupIdentifier": "pg", "TargetDBParameterGroupIdentifier": "pg",
	"DBInstanceParameterGroupName": "pg",
	"DBClusterParameterGroupName":  "cluster-pg", "SourceDBClusterParameterGroupIdentifier": "cluster-pg",
	"TargetDBClusterParameterGroupIdentifier": "cluster-pg",
	"SubscriptionName":                        "es",
	"DBSnapshotIdentifier":                    "snapshot", "SourceDBSnapshotIdentifier": "snapshot", "TargetDBSnapshotIdentifier": "snapshot",
	"DBClusterSnapshotIdentifier": "cluster-snapshot", "SourceDBClusterSnapshotIdentifier": "cluster-snapshot",
	"TargetDBClusterSnapshotIdentifier": "cluster-snapshot",
}

// arnParameters name a resource of any kind by its ARN.
var arnParameters = []string{"ResourceName", "ResourceIdentifier", "ResourceArn", "TopicArn", "TargetArn", "SubscriptionArn"}

// listed are the kinds of what actions list that name nothing: all of that kind
// must be allowed.
var listed = map[string]string{
	"rds:DescribeDBInstances": "db", "rds:DescribeDBClusters": "cluster", "rds:DescribeDBClusterEndpoints": "cluster-endpoint",
	"rds:DescribeDBSubnetGroups": "subgrp", "rds:DescribeOptionGroups": "og", "rds:DescribeDBParameterGroups": "pg",
	"rds:DescribeDBClusterParameterGroups": "cluster-pg", "rds:DescribeEventSubscriptions": "es", "rds:DescribeEvents": "es",
	"rds:DescribeDBSnapshots": "snapshot", "rds:DescribeDBClusterSnapshots": "cluster-snapshot",
}

// resources are the ARNs of all that a request names, in the form in which handlers
// will understand them; "*" where it names nothing.
func (c call) resources(in any) []string {
	found := map[string]bool{}
	each(in, func(name string, value reflect.Value) {
		text, ok := value.Interface().(*string)
		switch {
		case !ok || strings.TrimSpace(*text) == "":
		case kindOf[name] != "" && strings.HasPrefix(c.action, "rds:"):
			scope, id := locate(c.Scope, *text, kindOf[name])
			found[scope.ARN(kindOf[name], id)] = true
		case name == "Name" && c.action == "sns:CreateTopic":
			found[topic.ARN(c.Scope, *text)] = true
		case slices.Contains(arnParameters, name):
			found[plainARN(*text)] = true
		}
	})
	switch kind := listed[c.action]; {
	case len(found) > 0:
		return slices.Sorted(maps.Keys(found))
	case kind != "":
		return []string{c.ARN(kind, "*")}
	}
	return []string{"*"}
}

// namedBy is resources, where groups of EC2 are named by their names too.
func (s *Server) namedBy(c call, in any) []string {
	if !strings.HasPrefix(c.action, "ec2:") {
		return c.resources(in)
	}
	var found []string
	each(in, func(name string, value reflect.Value) {
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
				if g, err := s.groupNamed(c.Scope, text); err == nil && c.action != "ec2:CreateSecurityGroup" {
					found = append(found, g.ARN())
				}
			}
		}
	})
	switch {
	case len(found) > 0:
		return found
	case c.action == "ec2:CreateSecurityGroup":
		return []string{network.ARN(c.Scope, "security-group", "*")}
	}
	return []string{"*"}
}

// plainARN is an ARN as policies write it. Handlers do not look at the partition;
// RDS's not at the case either. A subscription of SNS is its topic's: policies name
// no other resources of that service.
func plainARN(arn string) string {
	if scope, name, ok := topic.ParseARN(arn); ok {
		return topic.ARN(scope, name)
	}
	if scope, name, _, ok := topic.ParseSubscriptionARN(arn); ok {
		return topic.ARN(scope, name)
	}
	arn = strings.TrimSpace(arn)
	parts := strings.SplitN(arn, ":", 4)
	if len(parts) < 4 || !strings.EqualFold(parts[0], "arn") || !strings.EqualFold(parts[2], "rds") {
		return arn
	}
	return "arn:aws:rds:" + strings.ToLower(parts[3])
}

// each goes through the members of a request that were given.
func each(in any, do func(name string, value reflect.Value)) {
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
// the request does not change of it.
func (l *look) contextOf(c call, resource string, asked map[string][]string) map[string][]string {
	all := maps.Clone(asked)
	add := func(key, value string) {
		if _, given := all[key]; !given && value != "" {
			all[key] = []string{value}
		}
	}
	if t, err := l.tagged(c.Scope, resource); err == nil {
		kind := strings.SplitN(resource, ":", 7)[5]
		for _, tag := range t.tags {
			all["aws:ResourceTag/"+tag.Key], all["rds:"+kind+"-tag/"+tag.Key] = []string{tag.Value}, []string{tag.Value}
		}
	}
	if t, ok := l.topicWith(c.Scope, resource); ok {
		for _, tag := range t.Tags {
			all["aws:ResourceTag/"+tag.Key] = []string{tag.Value}
		}
	}
	if g, ok := l.securityGroupWith(c.Scope, resource); ok {
		for _, tag := range g.Tags {
			all["aws:ResourceTag/"+tag.Key] = []string{tag.Value}
		}
	}
	if i, err := l.findInstance(c.Scope, resource); err == nil && strings.Contains(resource, ":db:") {
		addInstance(add, l.inherit(i.Value))
	}
	if found, err := l.findCluster(c.Scope, resource); err == nil && strings.Contains(resource, ":cluster:") {
		add("rds:DatabaseEngine", found.Value.Engine)
		add("rds:DatabaseName", found.Value.DBName)
		add("rds:DatabaseClass", found.Value.Class)
	}
	return all
}

// topicWith is the topic with an ARN.
func (s *Server) topicWith(scope spec.Scope, arn string) (topic.Topic, bool) {
	in, name, ok := topic.ParseARN(arn)
	if !ok || in != scope {
		return topic.Topic{}, false
	}
	r, err := state.Load[topic.Topic](s.Cache, state.Topic(in.Account, in.Region, name))
	return r.Value, err == nil
}

// securityGroupWith is the group with an ARN.
func (s *Server) securityGroupWith(scope spec.Scope, arn string) (network.Group, bool) {
	id, ok := strings.CutPrefix(arn, network.ARN(scope, "security-group", ""))
	if !ok {
		return network.Group{}, false
	}
	return s.securityBook(scope).Find(scope, id)
}

func addInstance(add func(key, value string), i spec.Instance) {
	add("rds:DatabaseClass", i.Class)
	add("rds:DatabaseEngine", i.Engine)
	add("rds:DatabaseName", i.DBName)
	add("rds:MultiAz", strconv.FormatBool(i.MultiAZ))
	add("rds:StorageEncrypted", strconv.FormatBool(i.Encrypted))
	add("rds:StorageSize", strconv.Itoa(i.Storage))
	if i.IOPS > 0 {
		add("rds:Piops", strconv.Itoa(i.IOPS))
	}
}

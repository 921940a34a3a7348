package rds

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// conditionKeys are what parameters are called in conditions.
var conditionKeys = map[string]string{
	"DBInstanceClass": "rds:DatabaseClass", "DBClusterInstanceClass": "rds:DatabaseClass", "Engine": "rds:DatabaseEngine",
	"DBName": "rds:DatabaseName", "DatabaseName": "rds:DatabaseName", "MultiAZ": "rds:MultiAz", "Iops": "rds:Piops",
	"StorageEncrypted": "rds:StorageEncrypted", "AllocatedStorage": "rds:StorageSize",
}

// requestContext adds the values of RDS's condition keys that a request has.
func requestContext(c front.Call, in any, all map[string][]string) {
	if c.Action == "rds:CreateDBInstance" {
		all["rds:MultiAz"], all["rds:StorageEncrypted"] = []string{"false"}, []string{"false"}
	}
	front.Each(in, func(name string, value reflect.Value) {
		if tags, ok := value.Interface().([]rds.Tag); ok {
			for _, t := range tags {
				key, text := wire.Or(t.Key, ""), wire.Or(t.Value, "")
				front.RequestTag(all, key, text)
				all["rds:req-tag/"+key] = []string{text}
			}
		} else if key := conditionKeys[name]; key != "" {
			all[key] = []string{scalarText(value)}
		}
	})
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

// addResource adds what a resource of RDS has; ok is false where nobody can tell: of a kind, or
// an ARN, that is not known here.
func addResource(l *look.Look, all map[string][]string, scope spec.Scope, arn string) (ok bool) {
	t, err := tagged(l, scope, arn)
	if invalid, is := errors.AsType[*wire.Error](err); is && invalid.Code == api.ErrInvalidParameterValue {
		return false
	}
	if err != nil {
		return true // there is no such thing, as where it is about to be made
	}
	kind := strings.Split(arn, ":")[5]
	front.ResourceTags(all, t.Tags, "rds:"+kind+"-tag/")
	add := func(key, value string) {
		if _, given := all[key]; !given && value != "" {
			all[key] = []string{value}
		}
	}
	if i, err := l.FindInstance(scope, arn); err == nil && kind == "db" {
		addInstance(add, l.Inherit(i.Value))
	}
	if found, err := l.FindCluster(scope, arn); err == nil && kind == "cluster" {
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

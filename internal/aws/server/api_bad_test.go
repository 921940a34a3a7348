package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/api"
	"howdah/internal/aws/wire"
)

// bad is one wrong value of one parameter of a call that is right otherwise.
type bad struct {
	service, action string
	parameter       string // with the way to it: Filters.Filter.1.Name
	kind            string // what is wrong with it
	value           string
	call            string
	required        bool
}

func (b bad) leaf() string {
	parts := strings.Split(b.parameter, ".")
	for len(parts) > 1 && strings.Trim(parts[len(parts)-1], "0123456789") == "" {
		parts = parts[:len(parts)-1]
	}
	return parts[len(parts)-1]
}

// sweep is a home with one of everything, which every call finds as it was.
type sweep struct {
	*user
	before   map[string]string // by key
	revision int64
	filling  *strings.Replacer
	found    map[string][]string // what is wrong, with the actions that it is wrong with
}

func (s *sweep) finds(b bad, format string, args ...any) {
	what := fmt.Sprintf("%s: %s (%.40q): ", b.parameter, b.kind, b.value) + fmt.Sprintf(format, args...)
	s.found[what] = append(s.found[what], b.action)
}

func newSweep(t *testing.T) *sweep {
	t.Helper()
	w := newWorld(t)
	s := &sweep{user: w.user(t), found: map[string][]string{}}
	s.backups()
	having(newDB)(s.user)
	having(newReplica, newCluster, newMember, second, addEndpoint, newTrio, newGroup, newShared, newTopic, subHook, newEvents+"&SourceType=db-instance&SourceIds.SourceId.1=db")(s.user)
	having(with(newDB, "DBInstanceIdentifier=lone"), with(newDB, "DBInstanceIdentifier=idle"), "StopDBInstance?DBInstanceIdentifier=idle", "AddSourceIdentifierToSubscription?SubscriptionName=watch&SourceIdentifier=lone")(s.user)
	having(with(newCluster, "DBClusterIdentifier=empty"), with(newCluster, "DBClusterIdentifier=dozing"), with(newMember, "DBInstanceIdentifier=dozing-1", "DBClusterIdentifier=dozing"), "StopDBCluster?DBClusterIdentifier=dozing")(s.user)
	having(newSubnets, newOptions, newSecurity, letOffice, addRole, addAuraRole)(s.user)
	s.writes("m1", 1, "a\nb\n")
	confirmed := s.asked().Only
	s.do("ConfirmSubscription?TopicArn=" + topicARN + "&Token=" + confirmed.Token)
	s.do(with(subHook, "Endpoint=https://hook.example/other"))
	s.withBackups()
	s.before, s.revision = s.keys()
	asked := s.asked().Only
	s.filling = strings.NewReplacer("{account}", s.account, "{subscription}", asked.ARN(), "{confirmed}", confirmed.ARN(), "{logged}", s.server.rds.Databases.Of(s.account).Instance[s.wanted()[0].ID].Name, "{token}", asked.Token)
	return s
}

func (s *sweep) keys() (map[string]string, int64) {
	s.Helper()
	answer, err := s.server.Store.Client.Get(s.Context(), "", clientv3.WithPrefix())
	if err != nil {
		s.Fatal(err)
	}
	all := map[string]string{}
	for _, kv := range answer.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all, answer.Header.Revision
}

// changed reports whether anything was written since the last look.
func (s *sweep) changed() bool {
	s.Helper()
	answer, err := s.server.Store.Client.Get(s.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		s.Fatal(err)
	}
	return answer.Header.Revision != s.revision
}

// restore puts everything back as it was.
func (s *sweep) restore() {
	s.Helper()
	now, _ := s.keys()
	var ops []clientv3.Op
	for key := range now {
		if _, was := s.before[key]; !was {
			ops = append(ops, clientv3.OpDelete(key))
		}
	}
	for key, value := range s.before {
		if now[key] != value {
			ops = append(ops, clientv3.OpPut(key, value))
		}
	}
	for chunk := range slices.Chunk(ops, 100) {
		if _, err := s.server.Store.Client.Txn(s.Context()).Then(chunk...).Commit(); err != nil {
			s.Fatal(err)
		}
	}
	_, s.revision = s.keys()
	if err := s.server.Cache.WaitRevision(context.WithoutCancel(s.Context()), s.revision); err != nil {
		s.Fatal(err)
	}
}

// ask makes a call and answers its status, code and message.
func (s *sweep) ask(service, call string) (int, *answer, string) {
	s.Helper()
	call = s.filling.Replace(call)
	action, query, _ := strings.Cut(call, "?")
	status, body := s.send("Action="+action+"&"+strings.ReplaceAll(query, " ", "+"), service, nil)
	a := s.check(call, action, status, body)
	return status, a, a.root.text("Error/Message") + a.root.text("Errors/Error/Message")
}

// TestBadInput gives every parameter of every action what it must not be: the answer is
// the service's own error, its message names the parameter, and nothing was done.
func TestBadInput(t *testing.T) {
	s := newSweep(t)
	calls := 0
	for _, service := range wire.Services() {
		for _, name := range done[service.Name] {
			a := modelOf(t, service.Name, name)
			base := rightCall(service.Name, name)
			if status, got, message := s.ask(service.Name, base); status != http.StatusOK && !neverRight[name] {
				t.Errorf("%s: the call that is right answers %s: %s", base, got.code, message)
				continue
			}
			if s.changed() {
				s.restore()
			}
			for _, b := range badValues(service, name, base, reflect.TypeOf(a.Input()).Elem()) {
				s.try(service, a, b)
				calls++
			}
		}
	}
	t.Logf("%d calls", calls)
	for _, what := range slices.Sorted(maps.Keys(s.found)) {
		t.Errorf("%s %s", what, slices.Compact(s.found[what]))
	}
}

func (s *sweep) try(service *api.Service, a *api.Action, b bad) {
	s.Helper()
	status, got, message := s.ask(service.Name, b.call)
	if status == http.StatusOK {
		if s.changed() {
			s.restore()
		}
		if !mayTake(b) {
			s.finds(b, "it is accepted")
		}
		return
	}
	if s.changed() {
		s.finds(b, "it is refused, and something was written")
		s.restore()
	}
	if !known(service, a, got.code) {
		s.finds(b, "answered %d %s, which is none of the action's: %.120s", status, got.code, message)
	}
	if len(message) > 2100 {
		s.finds(b, "the message has %d bytes", len(message))
	}
	if !names(got.code, message, b) {
		s.finds(b, "%s does not name it: %.160s", got.code, message)
	}
}

// known: a code is one that the model has for the action, or a common one that blames
// the caller. EC2's model has none for any action, but the service's reference has.
func known(service *api.Service, a *api.Action, code string) bool {
	if status, common := api.CommonErrors[code]; common {
		return status < http.StatusInternalServerError
	}
	return slices.Contains(a.Errors, code) || slices.Contains(alsoAnswers[a.Name], code) || service.Name == "ec2" && service.Errors[code] != 0
}

// mayTake: a value is not wrong after all.
func mayTake(b bad) bool {
	return b.kind == "empty" && !b.required || takes[b.parameter][b.kind] || takes[b.action+" "+b.parameter][b.kind]
}

// alsoAnswers are codes of the service that the model forgot to name for an action: they
// say better than a common one what is not there.
var alsoAnswers = map[string][]string{
	"CreateDBCluster": {"CertificateNotFound"}, "ModifyDBCluster": {"CertificateNotFound"}, "ModifyDBInstance": {"DBSubnetGroupNotFoundFault"},
	"FailoverDBCluster": {"DBInstanceNotFound"}, "CopyDBSnapshot": {"OptionGroupNotFoundFault"}, "ModifyDBSnapshot": {"OptionGroupNotFoundFault"},
}

// names: a message says which parameter is wrong, by its name, by that of what it is
// part of, or by the resource that is not there.
func names(code, message string, b bad) bool {
	plain := func(text string) string { return strings.ToLower(strings.ReplaceAll(text, " ", "")) }
	for segment := range strings.SplitSeq(b.parameter, ".") {
		whole := segment == b.leaf() || len(segment) > 5 && segment != "member" // not Tag, nor Key
		if whole && strings.Contains(plain(message), plain(strings.TrimSuffix(segment, "s"))) {
			return true
		}
	}
	for leaf, words := range wordsOfRDS {
		if slices.Contains(strings.Split(leaf, ","), b.leaf()) && strings.HasPrefix(message, words) {
			return true
		}
	}
	switch {
	case b.leaf() == "ParameterValue", b.leaf() == "AttributeValue":
		return strings.Contains(message, "work_mem") || strings.Contains(message, "DisplayName") // what it is the value of
	case strings.Contains(code, "NotFound") && b.value != "":
		return strings.Contains(message, b.value[strings.LastIndexByte(b.value, ':')+1:])
	}
	return false
}

// wordsOfRDS are the beginnings of messages that scripts compare and that do not name the
// parameter, by parameters.
var wordsOfRDS = map[string]string{
	"DBInstanceIdentifier,DBClusterIdentifier,TargetDBInstanceIdentifier": "Invalid database identifier: ",
	"MaxAllocatedStorage":        "Max storage size must be greater than storage size",
	"PreferredBackupWindow":      "Invalid backup window format: ",
	"PreferredMaintenanceWindow": "Invalid maintenance window format: ",
}

// takes are values that are as good as any: free texts, conditions that nothing meets,
// and what scripts send back as they got it.
var takes = func() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for kinds, parameters := range map[string]string{
		// free texts
		"odd": "DBSubnetGroupDescription,CreateDBParameterGroup Description,CreateDBClusterParameterGroup Description,OptionGroupDescription,TargetDBClusterParameterGroupDescription," +
			"TargetDBParameterGroupDescription,TargetOptionGroupDescription,SetTopicAttributes AttributeValue,KmsKeyId,PerformanceInsightsKMSKeyId,PreSignedUrl,Message,Subject",
		"odd,too long": "Message," +
			// conditions that nothing meets
			"AvailabilityZoneGroup,DescribeDBClusterEndpoints DBClusterEndpointIdentifier,DescribeOrderableDBInstanceOptions DBInstanceClass,DescribeDBEngineVersions DBParameterGroupFamily," +
			"DescribeOptionGroups EngineName,DescribeDBEngineVersions EngineVersion,DescribeOrderableDBInstanceOptions EngineVersion,DescribeEvents EventCategories.EventCategory.1," +
			"FilenameContains,DescribeOrderableDBInstanceOptions LicenseModel,DescribeDBMajorEngineVersions MajorEngineVersion,DescribeOptionGroupOptions MajorEngineVersion," +
			"ServerlessV2PlatformVersion,TagKeys.member.1," +
			// what DescribeDBParameters answered
			"Parameters.Parameter.1.AllowedValues,Parameters.Parameter.1.ApplyType,Parameters.Parameter.1.DataType,Parameters.Parameter.1.Description,Parameters.Parameter.1.MinimumEngineVersion," +
			"Parameters.Parameter.1.Source,Parameters.Parameter.1.SupportedEngineModes.member.1,ResetDBParameterGroup Parameters.Parameter.1.ParameterValue,ResetDBClusterParameterGroup Parameters.Parameter.1.ParameterValue",
		"of another account,of another region": "DescribeDBClusterEndpoints DBClusterEndpointIdentifier,DescribeOptionGroups EngineName,CreateSecurityGroup GroupName",
		"huge":                                 "NumberOfLines",
		"huge,negative":                        "FileLastWritten,FileSize",
		// other limits than most actions have
		"above its most":  "DescribeDBLogFiles MaxRecords,DescribeOrderableDBInstanceOptions MaxRecords",
		"below its least": "DescribeDBLogFiles MaxRecords",
	} {
		for parameter := range strings.SplitSeq(parameters, ",") {
			if all[parameter] == nil {
				all[parameter] = map[string]bool{}
			}
			for kind := range strings.SplitSeq(kinds, ",") {
				all[parameter][kind] = true
			}
		}
	}
	return all
}()

// rightCall is a call of an action that succeeds in the sweep's home.
func rightCall(service, action string) string {
	if call, ok := right[service+":"+action]; ok {
		return call
	}
	if call, ok := right[action]; ok {
		return call
	}
	return valid[action]
}

// neverRight are actions that need a home in another state than the sweep's: a newer
// minor version, here.
var neverRight = map[string]bool{"ApplyPendingMaintenanceAction": true}

// right are the calls that must find something, where the odd ones need not.
var right = map[string]string{
	"CreateDBInstance":   with(newDB, "DBInstanceIdentifier=odd", "AllocatedStorage=100"),
	"AddRoleToDBCluster": with(addAuraRole, "RoleArn=arn:aws:iam::123456789012:role/y"), "AddRoleToDBInstance": with(addRole, "DBInstanceIdentifier=lone"),
	"AddTagsToResource":   "AddTagsToResource?ResourceName=arn:aws:rds:us-east-1:{account}:db:db&Tags.Tag.1.Key=a",
	"ListTagsForResource": "ListTagsForResource?ResourceName=arn:aws:rds:us-east-1:{account}:db:db", "RemoveTagsFromResource": "RemoveTagsFromResource?ResourceName=arn:aws:rds:us-east-1:{account}:db:db&TagKeys.member.1=a",
	"sns:ListTagsForResource": "ListTagsForResource?ResourceArn=" + topicARN,
	"DeleteDBCluster":         "DeleteDBCluster?DBClusterIdentifier=empty&SkipFinalSnapshot=true", "DeleteDBClusterEndpoint": "DeleteDBClusterEndpoint?DBClusterEndpointIdentifier=reports",
	"DeleteDBClusterParameterGroup": "DeleteDBClusterParameterGroup?DBClusterParameterGroupName=ours", "DeleteDBParameterGroup": dropGroup,
	"DeleteDBInstance": "DeleteDBInstance?DBInstanceIdentifier=lone&SkipFinalSnapshot=true", "DeleteDBSubnetGroup": dropSubnets, "DeleteOptionGroup": dropOptions,
	"DeleteEventSubscription": "DeleteEventSubscription?SubscriptionName=watch", "RemoveSourceIdentifierFromSubscription": "RemoveSourceIdentifierFromSubscription?SubscriptionName=watch&SourceIdentifier=lone",
	"ModifyDBCluster": modifyAura + "&BackupRetentionPeriod=3&ApplyImmediately=true", "ModifyDBInstance": with(modifyDB, "DBInstanceIdentifier=lone", "AutoMinorVersionUpgrade=false", "ApplyImmediately=true"),
	"StartDBCluster": "StartDBCluster?DBClusterIdentifier=dozing", "StartDBInstance": "StartDBInstance?DBInstanceIdentifier=idle", "StopDBInstance": "StopDBInstance?DBInstanceIdentifier=lone",
	"DownloadDBLogFilePortion": with(readLog, "DBInstanceIdentifier={logged}"),
	"Unsubscribe":              "Unsubscribe?SubscriptionArn={confirmed}",
	"ConfirmSubscription":      "ConfirmSubscription?Token={token}&TopicArn=" + topicARN, "GetSubscriptionAttributes": "GetSubscriptionAttributes?SubscriptionArn={subscription}",
	"SetSubscriptionAttributes":     "SetSubscriptionAttributes?AttributeName=RawMessageDelivery&AttributeValue=true&SubscriptionArn={subscription}",
	"AuthorizeSecurityGroupIngress": with(letOffice, "IpPermissions.1.IpRanges.1.CidrIp=10.2.0.0/16"), "RevokeSecurityGroupIngress": strings.Replace(letOffice, "Authorize", "Revoke", 1),
	"DeleteSecurityGroup": "DeleteSecurityGroup?GroupName=app",
}

// badValues are the wrong values of all parameters of an action.
func badValues(service *api.Service, action, base string, shape reflect.Type) []bad {
	var all []bad
	for _, p := range describedParameters(shape, "", 0) {
		if strings.HasPrefix(p.name, "Filter") && !strings.HasSuffix(p.name, "Name") {
			continue // values of filters are free texts
		}
		for _, w := range wrong(service, p) {
			w.service, w.action, w.parameter, w.required = service.Name, action, p.name, p.required
			w.call = with(base, p.name+"="+url.QueryEscape(w.value))
			for name, value := range p.beside {
				if !strings.Contains(w.call, "&"+name+"=") && !strings.Contains(w.call, "?"+name+"=") {
					w.call = with(w.call, name+"="+value)
				}
			}
			all = append(all, w)
		}
	}
	return all
}

// described is a parameter with what the model says of it.
type described struct {
	name     string
	kind     reflect.Type
	check    string            // name of the limits
	beside   map[string]string // what must be given with it
	required bool
}

func describedParameters(shape reflect.Type, prefix string, depth int) []described {
	var all []described
	required := map[string]string{}
	for field := range shape.Fields() {
		m, ok := api.MemberOf(field)
		if !ok {
			continue
		}
		name, kind, check := prefix+m.Param, field.Type, m.Check
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Slice {
			all = append(all, described{name: name, kind: kind, beside: map[string]string{}})
			if !m.Flat {
				name += "." + m.Element
			}
			name, kind, check = name+".1", kind.Elem(), m.Each
		}
		if kind.Kind() == reflect.Struct && kind.Name() != "Time" {
			if depth < 3 {
				all = append(all, describedParameters(kind, name+".", depth+1)...)
			}
			continue
		}
		if m.Required && depth > 0 {
			required[name] = "x"
		}
		all = append(all, described{name: name, kind: kind, check: check, beside: map[string]string{}, required: m.Required && m.Element == ""})
	}
	for i := range all {
		for name, value := range required {
			if all[i].name != name {
				all[i].beside[name] = value
			}
		}
	}
	return all
}

const foreignARN = "arn:aws:rds:us-east-1:999999999999:"

// wrong are the wrong values of one parameter.
func wrong(service *api.Service, p described) []bad {
	limits := service.Checks[p.check]
	leaf := bad{parameter: p.name}.leaf()
	switch {
	case p.kind.Kind() == reflect.Slice:
		return []bad{{kind: "no list", value: "x"}, {kind: "empty", value: ""}}
	case p.kind.Kind() == reflect.Bool:
		return []bad{{kind: "no boolean", value: "abc"}, {kind: "empty", value: ""}}
	case p.kind.Kind() == reflect.Int32 || p.kind.Kind() == reflect.Int64:
		all := []bad{{kind: "no number", value: "abc"}, {kind: "no whole number", value: "1.5"}, {kind: "too large for its type", value: "99999999999999999999"}, {kind: "empty", value: ""}, {kind: "negative", value: "-1"}, {kind: "huge", value: "2000000000"}}
		if leaf == "MaxRecords" {
			all = append(all, bad{kind: "below its least", value: "0"}, bad{kind: "below its least", value: "19"}, bad{kind: "above its most", value: "101"})
		}
		return all
	case p.kind.Kind() == reflect.Float64:
		return []bad{{kind: "no number", value: "abc"}, {kind: "infinite", value: "Infinity"}, {kind: "negative", value: "-1"}}
	case p.kind.Name() == "Time":
		return []bad{{kind: "no time", value: "yesterday"}, {kind: "no date", value: "2026-13-40T00:00:00Z"}, {kind: "empty", value: ""}}
	}
	all := []bad{{kind: "too long", value: strings.Repeat("a", 70000)}, {kind: "odd", value: "é漢<&>'\" ;\\"}, {kind: "empty", value: ""}}
	if len(limits.Enum) > 0 {
		return []bad{{kind: "not in the enumeration", value: "nonsense"}, {kind: "empty", value: ""}}
	}
	if strings.HasSuffix(leaf, "Identifier") || strings.HasSuffix(leaf, "Arn") || strings.HasSuffix(leaf, "ARN") || strings.HasSuffix(leaf, "Name") {
		for _, kind := range []string{"db:db", "cluster:aura", "pg:mine"} {
			all = append(all, bad{kind: "of another account", value: foreignARN + kind})
		}
		all = append(all, bad{kind: "of another region", value: "arn:aws:rds:eu-west-9:{account}:db:db"})
	}
	if leaf == "Marker" || leaf == "NextToken" {
		all = append(all, bad{kind: "no marker", value: "nonsense"}, bad{kind: "no marker", value: "aG93"})
	}
	return all
}

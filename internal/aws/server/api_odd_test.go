package server

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"howdah/api"
	"howdah/internal/aws/wire"
)

// odd are values that no parameter is meant to have, whatever its type, besides those
// of TestBadInput.
var odd = []string{" ", "x", "0", "1e400", "true", "2026-13-40T99:99:99Z", "é漢\x00\xff<&>'\""}

// TestOddValues gives every parameter of every action every odd value: none of
// them is our fault, so no answer may be a 5xx. Answers are held against the model
// and looked through for passwords, as always.
func TestOddValues(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	having(newDB, newReplica, newCluster, newMember, second, addEndpoint, newTrio, newGroup, newShared, newTopic, subHook, newEvents)(u)
	having(newSubnets, newOptions, newSecurity, letOffice)(u)
	calls := 0
	for service, all := range done {
		for _, name := range all {
			a := modelOf(t, service, name)
			base := service + ":" + valid[name]
			for _, parameter := range parametersOf(reflect.TypeOf(a.Input()).Elem(), "", 0) {
				for _, value := range odd {
					u.harmless(with(base, parameter+"="+url.QueryEscape(value)))
					calls++
				}
			}
		}
	}
	t.Logf("%d calls", calls)
	if calls < 5000 {
		t.Errorf("only %d calls: where are the parameters?", calls)
	}
}

// valid are calls that the odd values are put into. What they name exists.
var valid = map[string]string{
	"CreateDBInstance": with(newDB, "DBInstanceIdentifier=odd"), "CreateDBCluster": with(newCluster, "DBClusterIdentifier=odd"),
	"CreateDBInstanceReadReplica": with(newReplica, "DBInstanceIdentifier=odd"), "CreateDBClusterEndpoint": with(addEndpoint, "DBClusterEndpointIdentifier=odd"),
	"ModifyDBInstance": modifyDB + "&ApplyImmediately=true", "ModifyDBCluster": modifyAura + "&ApplyImmediately=true",
	"ModifyDBClusterEndpoint": setEndpoint, "DeleteDBInstance": "DeleteDBInstance?DBInstanceIdentifier=db",
	"DeleteDBCluster": "DeleteDBCluster?DBClusterIdentifier=aura", "DeleteDBClusterEndpoint": "DeleteDBClusterEndpoint?DBClusterEndpointIdentifier=none",
	"RebootDBInstance": rebootDB, "StartDBInstance": startDB, "StopDBInstance": stopDB, "PromoteReadReplica": promote,
	"FailoverDBCluster": failover, "RebootDBCluster": "RebootDBCluster?DBClusterIdentifier=trio", "StartDBCluster": startAura, "StopDBCluster": stopAura,
	"DescribeDBInstances": "DescribeDBInstances?", "DescribeDBClusters": "DescribeDBClusters?", "DescribeDBClusterEndpoints": "DescribeDBClusterEndpoints?",
	"ApplyPendingMaintenanceAction":     "ApplyPendingMaintenanceAction?ApplyAction=db-upgrade&OptInType=immediate&ResourceIdentifier=x",
	"DescribePendingMaintenanceActions": "DescribePendingMaintenanceActions?",
	"DescribeEvents":                    "DescribeEvents?", "ListTagsForResource": "ListTagsForResource?", "AddTagsToResource": "AddTagsToResource?Tags.Tag.1.Key=a",
	"CreateDBParameterGroup": with(newGroup, "DBParameterGroupName=odd"), "CreateDBClusterParameterGroup": with(newShared, "DBClusterParameterGroupName=odd"),
	"CopyDBParameterGroup": copyGroup, "ModifyDBParameterGroup": values(setGroup, "work_mem=64MB"), "ResetDBParameterGroup": values(resetGroup, "work_mem"),
	"CopyDBClusterParameterGroup":   "CopyDBClusterParameterGroup?SourceDBClusterParameterGroupIdentifier=ours&TargetDBClusterParameterGroupIdentifier=x&TargetDBClusterParameterGroupDescription=d",
	"ModifyDBClusterParameterGroup": values(setShared, "work_mem=64MB"), "ResetDBClusterParameterGroup": "ResetDBClusterParameterGroup?DBClusterParameterGroupName=ours&ResetAllParameters=true",
	"DeleteDBParameterGroup": "DeleteDBParameterGroup?DBParameterGroupName=odd", "DeleteDBClusterParameterGroup": "DeleteDBClusterParameterGroup?DBClusterParameterGroupName=odd",
	"DescribeDBParameterGroups": showGroups, "DescribeDBClusterParameterGroups": "DescribeDBClusterParameterGroups?", "DescribeDBParameters": showMine,
	"DescribeDBClusterParameters":            "DescribeDBClusterParameters?DBClusterParameterGroupName=ours",
	"DescribeEngineDefaultParameters":        "DescribeEngineDefaultParameters?DBParameterGroupFamily=postgres15",
	"DescribeEngineDefaultClusterParameters": "DescribeEngineDefaultClusterParameters?DBParameterGroupFamily=aurora-postgresql15",
	"RemoveTagsFromResource":                 "RemoveTagsFromResource?TagKeys.member.1=a", "GetCallerIdentity": "GetCallerIdentity?",
	"CreateEventSubscription": with(newEvents, "SubscriptionName=odd"), "ModifyEventSubscription": setEvents, "DescribeEventSubscriptions": "DescribeEventSubscriptions?",
	"DeleteEventSubscription": "DeleteEventSubscription?SubscriptionName=none", "DescribeEventCategories": "DescribeEventCategories?",
	"AddSourceIdentifierToSubscription":      "AddSourceIdentifierToSubscription?SubscriptionName=watch&SourceIdentifier=db",
	"RemoveSourceIdentifierFromSubscription": "RemoveSourceIdentifierFromSubscription?SubscriptionName=watch&SourceIdentifier=db",
	"CreateTopic":                            "CreateTopic?Name=odd", "DeleteTopic": "DeleteTopic?TopicArn=" + topicARN + "x", "ListTopics": "ListTopics?",
	"GetTopicAttributes": showTopic, "SetTopicAttributes": setTopic + "&AttributeName=DisplayName&AttributeValue=x", "Subscribe": subHook,
	"ConfirmSubscription": "ConfirmSubscription?Token=x&TopicArn=" + topicARN, "Unsubscribe": "Unsubscribe?SubscriptionArn=" + topicARN + ":x",
	"ListSubscriptions": "ListSubscriptions?", "ListSubscriptionsByTopic": "ListSubscriptionsByTopic?TopicArn=" + topicARN,
	"GetSubscriptionAttributes": "GetSubscriptionAttributes?SubscriptionArn=" + topicARN + ":x", "Publish": publishCall,
	"SetSubscriptionAttributes": "SetSubscriptionAttributes?AttributeName=RawMessageDelivery&SubscriptionArn=" + topicARN + ":x",
	"TagResource":               "TagResource?ResourceArn=" + topicARN + "&Tags.member.1.Key=a&Tags.member.1.Value=b",
	"UntagResource":             "UntagResource?ResourceArn=" + topicARN + "&TagKeys.member.1=a",
	"DescribeDBEngineVersions":  showVersions, "DescribeDBMajorEngineVersions": majors, "DescribeOrderableDBInstanceOptions": orderable,
	"DescribeAccountAttributes": "DescribeAccountAttributes?", "DescribeSourceRegions": "DescribeSourceRegions?",
	"DescribeValidDBInstanceModifications": "DescribeValidDBInstanceModifications?DBInstanceIdentifier=db",
	"DescribeServerlessV2PlatformVersions": "DescribeServerlessV2PlatformVersions?", "DescribeCertificates": "DescribeCertificates?",
	"ModifyCertificates":  "ModifyCertificates?CertificateIdentifier=howdah-ca",
	"CreateDBSubnetGroup": with(newSubnets, "DBSubnetGroupName=odd"), "DescribeDBSubnetGroups": "DescribeDBSubnetGroups?", "ModifyDBSubnetGroup": setSubnets,
	"DeleteDBSubnetGroup": with(dropSubnets, "DBSubnetGroupName=none"), "CreateOptionGroup": with(newOptions, "OptionGroupName=odd"),
	"CopyOptionGroup": with(copyOptions, "TargetOptionGroupIdentifier=odd2"), "ModifyOptionGroup": setOptions, "DescribeOptionGroups": "DescribeOptionGroups?",
	"DeleteOptionGroup": with(dropOptions, "OptionGroupName=none"), "DescribeOptionGroupOptions": "DescribeOptionGroupOptions?EngineName=postgres",
	"CreateSecurityGroup": with(newSecurity, "GroupName=odd"), "DeleteSecurityGroup": "DeleteSecurityGroup?GroupName=none",
	"DescribeSecurityGroups": "DescribeSecurityGroups?", "DescribeSecurityGroupRules": "DescribeSecurityGroupRules?",
	"AuthorizeSecurityGroupIngress": "AuthorizeSecurityGroupIngress?GroupName=app&" + tcp5432, "RevokeSecurityGroupIngress": "RevokeSecurityGroupIngress?GroupName=app&" + tcp5432,
	"DescribeVpcs": "DescribeVpcs?", "DescribeSubnets": "DescribeSubnets?",
	"DescribeDBLogFiles": showLogs, "DownloadDBLogFilePortion": readLog,
	"AddRoleToDBInstance": addRole, "RemoveRoleFromDBInstance": dropRole, "AddRoleToDBCluster": addAuraRole, "RemoveRoleFromDBCluster": dropAuraRole,
}

func modelOf(t *testing.T, service, action string) *api.Action {
	t.Helper()
	for _, s := range wire.Services() {
		if a, ok := s.Action(action); ok && s.Name == service {
			if valid[action] == "" {
				t.Fatalf("there is no valid call of %s", action)
			}
			return a
		}
	}
	t.Fatalf("no model has %s of %s", action, service)
	return nil
}

// parametersOf are the names of all parameters of an input, with the first element
// of lists.
func parametersOf(shape reflect.Type, prefix string, depth int) []string {
	var all []string
	for field := range shape.Fields() {
		member, ok := api.MemberOf(field)
		if !ok {
			continue
		}
		name, kind := prefix+member.Param, field.Type
		for kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		all = append(all, name)
		if kind.Kind() == reflect.Slice {
			if !member.Flat {
				name += "." + member.Element
			}
			name, kind = name+".1", kind.Elem()
			all = append(all, name)
		}
		if kind.Kind() == reflect.Struct && kind.Name() != "Time" && depth < 3 {
			all = append(all, parametersOf(kind, name+".", depth+1)...)
		}
	}
	return all
}

// harmless makes a call whatever it answers, but for a failure of ours.
func (u *user) harmless(call string) {
	u.Helper()
	call = u.fill(call)
	action, query, _ := strings.Cut(call, "?")
	service, action := serviceOf(action)
	status, body := u.send("Action="+action+"&"+query, service, nil)
	a := u.check(call, action, status, body)
	if status >= http.StatusInternalServerError {
		u.Errorf("%.300s: answered %d %s: %s", call, status, a.code, a.body)
	}
}

// TestSDKRequests sends the requests that the authors of the Go SDK keep as the
// truth about them, one for each of RDS's actions with every parameter it has.
func TestSDKRequests(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-sdk-go-v2/service/rds").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "request_snapshot", "*.snap"))
	if err != nil || len(files) < 150 {
		t.Fatalf("%d requests: %v", len(files), err)
	}
	w := newWorld(t)
	u := w.user(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, form, ok := strings.Cut(string(text), "application/x-www-form-urlencoded\n\n")
		if !ok {
			t.Fatalf("%s: unexpected request", file)
		}
		form = strings.TrimSpace(form)
		values, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		action := values.Get("Action")
		status, body := u.send(form, "rds", nil)
		a := u.check(file, action, status, body)
		known := slices.Contains(Implemented(), "rds "+action)
		if status >= http.StatusInternalServerError || known == (a.code == "InvalidAction") {
			t.Errorf("%s: answered %d %s\n%s", action, status, a.code, body)
		}
	}
}

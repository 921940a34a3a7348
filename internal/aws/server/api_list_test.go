package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"howdah/internal/aws/rds/endpoint"
	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

const (
	addEndpoint  = "CreateDBClusterEndpoint?DBClusterIdentifier=aura&DBClusterEndpointIdentifier=reports&EndpointType=READER"
	setEndpoint  = "ModifyDBClusterEndpoint?DBClusterEndpointIdentifier=reports"
	dropEndpoint = "DeleteDBClusterEndpoint?DBClusterEndpointIdentifier=reports"
	endpoints    = "DescribeDBClusterEndpoints?DBClusterIdentifier=aura"
)

var endpointScenarios = slices.Concat([]scenario{
	{
		name: "an endpoint of some instances", setup: having(newCluster, newMember, second), call: addEndpoint + "&StaticMembers.member.1=aura-2&Tags.Tag.1.Key=a",
		want: []string{"DBClusterEndpointIdentifier=reports", "EndpointType=CUSTOM", "CustomEndpointType=READER", "StaticMembers/member=aura-2", "Status=creating"},
		after: func(u *user) {
			u.settle()
			u.do(endpoints).has("DBClusterEndpoints/DBClusterEndpointList#3", "DBClusterEndpoints/DBClusterEndpointList[1]/EndpointType=WRITER",
				"DBClusterEndpoints/DBClusterEndpointList[2]/EndpointType=READER", "DBClusterEndpoints/DBClusterEndpointList[3]/Status=available")
			u.do(showAura).has("DBClusters/DBCluster/CustomEndpoints/member#1")
			u.try(addEndpoint).is("DBClusterEndpointAlreadyExistsFault", "")
			u.do(setEndpoint+"&EndpointType=ANY&ExcludedMembers.member.1=aura-1").has("CustomEndpointType=ANY", "StaticMembers/member#0", "ExcludedMembers/member=aura-1")
			u.do(dropEndpoint).has("Status=deleting")
			u.try(dropEndpoint).is("InvalidDBClusterEndpointStateFault", "")
			u.try(setEndpoint+"&EndpointType=ANY").is("InvalidDBClusterEndpointStateFault", "")
			u.settle()
			u.try(dropEndpoint).is("DBClusterEndpointNotFoundFault", "reports")
		},
	},
	{
		name: "filters of endpoints", setup: having(newCluster, newMember, addEndpoint), call: endpoints + "&Filters.Filter.1.Name=db-cluster-endpoint-type&Filters.Filter.1.Values.Value.1=custom",
		want: []string{"DBClusterEndpoints/DBClusterEndpointList#1", "DBClusterEndpoints/DBClusterEndpointList/DBClusterEndpointIdentifier=reports"},
	},
	{
		name: "five are enough", setup: func(u *user) {
			u.do(newCluster)
			for n := range look.MaxEndpoints {
				u.do(with(addEndpoint, fmt.Sprintf("DBClusterEndpointIdentifier=e%d", n)))
			}
		}, call: addEndpoint, code: "DBClusterEndpointQuotaExceededFault",
	},
	{
		name: "endpoints go with their cluster", setup: having(newCluster, addEndpoint, dropAura), call: "DescribeDBClusterEndpoints",
		want: []string{"DBClusterEndpoints/DBClusterEndpointList#0"},
	},
	{name: "endpoints of nothing", call: endpoints, code: noCluster},
}, refusals(having(newCluster, newMember, newDB), addEndpoint, []refusal{
	{"-DBClusterIdentifier", missing, "DBClusterIdentifier"},
	{"-DBClusterEndpointIdentifier", missing, "DBClusterEndpointIdentifier"},
	{"-EndpointType", missing, "EndpointType"},
	{"DBClusterIdentifier=nowhere", noCluster, "nowhere"},
	{"DBClusterEndpointIdentifier=1", badValue, "DBClusterEndpointIdentifier"},
	{"EndpointType=WRITER", badValue, "WRITER"},
	{"StaticMembers.member.1=nobody", "DBInstanceNotFound", "nobody"},
	{"StaticMembers.member.1=db", badState, "not in the DB cluster"},
	{"StaticMembers.member.1=aura-1&ExcludedMembers.member.1=aura-1", badMix, "together"},
	{"Tags.Tag.1.Key=rds:x", badValue, "rds:"},
}))

// many makes 45 instances, whose work is not done.
func many(u *user) {
	for n := range 45 {
		u.do(with(newDB, fmt.Sprintf("DBInstanceIdentifier=db-%02d", n)))
	}
}

var listScenarios = []scenario{
	{
		name: "pages", setup: many, call: "DescribeDBInstances?MaxRecords=20", want: []string{"DBInstances/DBInstance#20", "DBInstances/DBInstance[20]/DBInstanceIdentifier=db-19"},
		after: func(u *user) {
			marker := u.do("DescribeDBInstances?MaxRecords=20").text("Marker")
			u.do("DeleteDBInstance?DBInstanceIdentifier=db-19&SkipFinalSnapshot=true")
			u.settle()
			page := u.do("DescribeDBInstances?MaxRecords=20&Marker=" + marker)
			page.has("DBInstances/DBInstance[1]/DBInstanceIdentifier=db-20", "DBInstances/DBInstance#20")
			u.do("DescribeDBInstances?MaxRecords=20&Marker="+page.text("Marker")).has("DBInstances/DBInstance#5", "!Marker")
			u.do("DescribeDBInstances").has("DBInstances/DBInstance#44", "!Marker")
		},
	},
	{name: "too few a page", call: "DescribeDBInstances?MaxRecords=19", code: badValue, message: "between 20 and 100"},
	{name: "too many a page", call: "DescribeDBClusters?MaxRecords=101", code: badValue, message: "between 20 and 100"},
	{name: "a marker of someone else", call: "DescribeDBInstances?Marker=abc", code: badValue, message: "marker"},
	{name: "a marker that is no base64", call: "DescribeDBClusterEndpoints?Marker=%2F%2F", code: badValue, message: "marker"},
	{name: "an empty marker is the first page", call: "DescribeDBInstances?Marker=", want: []string{"DBInstances/DBInstance#0"}},
	{
		name: "filters", setup: having(newDB, newCluster, newMember), call: "DescribeDBInstances?Filters.Filter.1.Name=engine&Filters.Filter.1.Values.Value.1=postgres",
		want: []string{"DBInstances/DBInstance#1", "DBInstances/DBInstance/DBInstanceIdentifier=db"},
		after: func(u *user) {
			by := func(name, value string) string {
				return "?Filters.Filter.1.Name=" + name + "&Filters.Filter.1.Values.Value.1=none&Filters.Filter.1.Values.Value.2=" + value
			}
			u.do("DescribeDBInstances"+by("db-cluster-id", "aura")).has("DBInstances/DBInstance#1", "DBInstances/DBInstance/DBInstanceIdentifier=aura-1")
			u.do("DescribeDBInstances" + by("db-instance-id", "arn:aws:rds:us-east-1:"+u.account+":db:db")).has("DBInstances/DBInstance#1")
			u.do("DescribeDBInstances" + by("dbi-resource-id", u.instanceRecord("db").ResourceID)).has("DBInstances/DBInstance#1")
			u.do("DescribeDBClusters" + by("db-cluster-resource-id", u.clusterRecord("aura").ResourceID)).has("DBClusters/DBCluster#1")
			u.do("DescribeDBClusters" + by("engine", "postgres")).has("DBClusters/DBCluster#0")
			u.do("DescribeDBInstances" + by("domain", "x")).has("DBInstances/DBInstance#0")
			both := by("engine", "postgres") + "&Filters.Filter.2.Name=db-cluster-id&Filters.Filter.2.Values.Value.1=aura"
			u.do("DescribeDBInstances" + both).has("DBInstances/DBInstance#0")
		},
	},
	{name: "an unknown filter", call: "DescribeDBInstances?Filters.Filter.1.Name=color&Filters.Filter.1.Values.Value.1=x", code: badValue, message: "Unrecognized filter name: color"},
	{name: "a filter without values", call: "DescribeDBClusters?Filters.Filter.1.Name=engine&Filters.Filter.1.Values=", code: badMix, message: "must not be empty"},
	{name: "a filter without a name", call: "DescribeDBInstances?Filters.Filter.1.Values.Value.1=x", code: missing, message: "Filters"},
	{name: "by ARN", setup: having(newDB), call: showDB, after: func(u *user) {
		u.do("DescribeDBInstances?DBInstanceIdentifier=arn:aws:rds:us-east-1:" + u.account + ":db:db").has("DBInstances/DBInstance#1")
		u.try("DescribeDBInstances?DBInstanceIdentifier=arn:aws:rds:us-east-1:000000000000:db:db").is("DBInstanceNotFound", "")
		u.try("DescribeDBInstances?DBInstanceIdentifier=arn:aws:rds:us-east-1:"+u.account+":cluster:db").is("DBInstanceNotFound", "")
	}},
	{name: "another account's instance", setup: having(newDB), call: showDB, after: func(u *user) {
		other := u.world.user(u.T)
		other.try(showDB).is("DBInstanceNotFound", "")
		other.do("DescribeDBInstances").has("DBInstances/DBInstance#0")
		other.try("ListTagsForResource?ResourceName=arn:aws:rds:us-east-1:"+u.account+":db:db").is(badValue, "region")
	}},
	{name: "who calls", call: "GetCallerIdentity", after: func(u *user) {
		u.do("GetCallerIdentity").has("Account="+u.account, "Arn=arn:aws:iam::"+u.account+":root")
	}},
}

var eventScenarios = []scenario{
	{
		name: "events of a source", setup: having(newDB, newCluster), call: "DescribeEvents?SourceType=db-cluster&SourceIdentifier=aura",
		want: []string{"Events/Event#1", "Events/Event/Message=DB cluster created", "Events/Event/EventCategories/EventCategory=creation", "Events/Event/SourceType=db-cluster"},
		after: func(u *user) {
			u.do("DescribeEvents?SourceType=db-instance&SourceIdentifier=aura").has("Events/Event#0")
			u.do("DescribeEvents?EventCategories.EventCategory.1=deletion").has("Events/Event#0")
			u.do("DescribeEvents?EventCategories.EventCategory.1=deletion&EventCategories.EventCategory.2=creation").has("Events/Event#1")
			u.do("DescribeEvents?SourceType=db-cluster&SourceIdentifier=arn:aws:rds:us-east-1:" + u.account + ":cluster:aura").has("Events/Event#1")
			u.do("DescribeEvents?StartTime=2026-01-01T00:00:00Z&EndTime=2026-01-02T00:00:00Z").has("Events/Event#0")
		},
	},
	{
		name: "pages of events", setup: func(u *user) {
			u.do(newDB)
			u.settle()
			for n := range 30 {
				u.do(with(modifyDB, fmt.Sprintf("NewDBInstanceIdentifier=db-%d", n), "ApplyImmediately=true"))
				u.settle()
				u.do(with(modifyDB, fmt.Sprintf("DBInstanceIdentifier=db-%d", n), "NewDBInstanceIdentifier=db", "ApplyImmediately=true"))
				u.settle()
			}
		}, call: "DescribeEvents?MaxRecords=40", want: []string{"Events/Event#40", "Events/Event[1]/Message=Renamed DB instance from db to db-0."},
		after: func(u *user) {
			next := u.do("DescribeEvents?MaxRecords=40").text("Marker")
			u.do("DescribeEvents?MaxRecords=40&Marker="+next).has("Events/Event#20", "!Marker")
		},
	},
	{name: "a source without its type", call: "DescribeEvents?SourceIdentifier=db", code: badMix, message: "Cannot specify a source identifier without source type"},
	{name: "an unknown source type", call: "DescribeEvents?SourceType=db-toaster", code: badValue},
	{name: "too long", call: "DescribeEvents?Duration=20161", code: badValue, message: "20160"},
	{name: "too short", call: "DescribeEvents?Duration=0", code: badValue},
	{name: "from later to earlier", call: "DescribeEvents?StartTime=2026-01-02T00:00:00Z&EndTime=2026-01-01T00:00:00Z", code: badMix},
	{name: "all three times", call: "DescribeEvents?StartTime=2026-01-01T00:00:00Z&EndTime=2026-01-02T00:00:00Z&Duration=5", code: badMix},
	{name: "no time at all", call: "DescribeEvents?StartTime=yesterday", code: badValue},
	{name: "a filter", call: "DescribeEvents?Filters.Filter.1.Name=x&Filters.Filter.1.Values.Value.1=y", code: badValue},
}

var tagScenarios = []scenario{
	{
		name: "tags of all kinds of resources", setup: having(newDB, newCluster, addEndpoint), call: showDB,
		after: func(u *user) {
			for _, name := range []string{"db:db", "cluster:aura", "cluster-endpoint:reports"} {
				arn := "ResourceName=arn:aws:rds:us-east-1:" + u.account + ":" + name
				u.do("AddTagsToResource?" + arn + "&Tags.Tag.1.Key=a&Tags.Tag.1.Value=1&Tags.Tag.2.Key=b&Tags.Tag.2.Value=2")
				u.do("AddTagsToResource?" + arn + "&Tags.Tag.1.Key=a&Tags.Tag.1.Value=3")
				u.do("RemoveTagsFromResource?" + arn + "&TagKeys.member.1=b&TagKeys.member.2=none")
				u.do("ListTagsForResource?"+arn).has("TagList/Tag#1", "TagList/Tag/Key=a", "TagList/Tag/Value=3")
				u.try("AddTagsToResource?"+arn+"&Tags.Tag.1.Key=howdah:promotable&Tags.Tag.1.Value=maybe").is(badValue, "howdah:promotable")
			}
		},
	},
	{name: "no ARN", call: "ListTagsForResource?ResourceName=db", code: badValue, message: "Invalid resource name"},
	{name: "no resource", call: "ListTagsForResource", code: missing},
	{name: "another kind", call: "ListTagsForResource?ResourceName=arn:aws:rds:us-east-1:000000000001:og:default", code: badValue},
	{name: "tags of nothing", call: "GetCallerIdentity", after: func(u *user) {
		u.try("ListTagsForResource?ResourceName=arn:aws:rds:us-east-1:"+u.account+":db:none").is("DBInstanceNotFound", "none")
		u.try("RemoveTagsFromResource?TagKeys.member.1=a&ResourceName=arn:aws:rds:us-east-1:"+u.account+":cluster:none").is(noCluster, "none")
	}},
	{name: "tags of what is being deleted", setup: having(newDB), call: dropDB, after: func(u *user) {
		u.try("AddTagsToResource?Tags.Tag.1.Key=a&ResourceName=arn:aws:rds:us-east-1:"+u.account+":db:db").is(badState, "being deleted")
	}},
	{name: "too many", setup: having(newDB), call: showDB, after: func(u *user) {
		var query strings.Builder
		for n := range 51 {
			fmt.Fprintf(&query, "&Tags.Tag.%d.Key=k%d", n+1, n)
		}
		u.try("AddTagsToResource?ResourceName=arn:aws:rds:us-east-1:"+u.account+":db:db"+query.String()).is(badValue, "50")
	}},
}

var waitsForHost = []plan.Step{{Name: "waiting for a host"}}

// TestEndpointWaitsForCertificates: a custom endpoint is available when clients can
// verify its address, on all members that run.
func TestEndpointWaitsForCertificates(t *testing.T) {
	u := newWorld(t).user(t)
	having(newCluster, newMember, second, addEndpoint)(u)
	is := func(status string) {
		t.Helper()
		u.do("DescribeDBClusterEndpoints?DBClusterEndpointIdentifier=reports").has("DBClusterEndpoints/DBClusterEndpointList/Status=" + status)
	}
	is("available")
	l := u.server.rds.Databases.Of(u.account)
	cluster := u.clusterRecord("aura")
	address := l.EndpointsOf(cluster.ResourceID)[0].Value.Address
	told := func(generation int64, ips ...string) {
		for _, m := range l.FactsOfCluster(cluster).Layout.Members {
			id := member.ID(cluster.ResourceID, m.Name)
			u.put(state.Put(state.Assign(m.Host, id), member.Assignment{ID: id, Generation: generation, Want: member.Running, ServerIPs: ips}))
		}
	}
	told(0, "127.0.0.9")
	is("creating") // not assigned yet
	told(1, "127.0.0.9", address)
	is("creating") // assigned, and not acted on
	u.see("aura", func(s *scene) { s.each(func(r *member.Report) { r.Generation = 1 }) })
	is("available")
	told(2, "127.0.0.9", address)
	is("creating")
	u.at(u.now().Add(2 * endpoint.Fresh))
	is("available") // some other change is on its way
}

// TestOldEvents: an event is not shown after 14 days, also before it is swept.
func TestOldEvents(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	day := at(t, "2026-11-23T12:00:00Z")
	w.at(day)
	u.do(newCluster)
	u.do("DescribeEvents?StartTime=2026-11-23T00:00:00Z").has("Events/Event#1")
	w.at(day.Add(event.Keep - minute))
	u.do("DescribeEvents?StartTime=2026-11-23T00:00:00Z").has("Events/Event#1")
	u.do("DescribeEvents").has("Events/Event#0")
	w.at(day.Add(event.Keep + minute))
	u.do("DescribeEvents?StartTime=2026-11-23T00:00:00Z").has("Events/Event#0")
}

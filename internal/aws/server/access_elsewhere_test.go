package server

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
)

// denyTagged denies everything on what has the tag team=blue.
const denyTagged = `[` + allowAll + `,{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/team":"blue"}}}]`

// TestDenyByTagAcrossRegions: what a policy says of a resource's tags, class or name
// holds from whichever region the resource is named.
func TestDenyByTagAcrossRegions(t *testing.T) {
	w := newWorld(t)
	const copyOf = "CreateDBInstanceReadReplica?DBInstanceIdentifier=%&SourceDBInstanceIdentifier=arn:aws:rds:us-east-1:ACCOUNT:db:"
	for name, statement := range map[string]string{
		"a tag":              `{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/team":"blue"}}}`,
		"RDS's name of it":   `{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringLike":{"rds:db-tag/team":"b*"}}}`,
		"the size":           `{"Effect":"Deny","Action":"*","Resource":"arn:aws:rds:us-east-1:*","Condition":{"NumericGreaterThan":{"rds:StorageSize":"40"}}}`,
		"the database in it": `{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringEquals":{"rds:DatabaseName":"secrets"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			root := w.user(t)
			having(newDB, with(newDB, "DBInstanceIdentifier=tagged", "AllocatedStorage=50", "DBName=secrets")+"&Tags.Tag.1.Key=team&Tags.Tag.1.Value=blue")(root)
			k := root.withPolicy(`[` + allowAll + `,` + statement + `]`)
			call := func(name, source string) string {
				return strings.NewReplacer("%", name, "ACCOUNT", k.account).Replace(copyOf) + source
			}
			for _, region := range []string{"us-east-1", "eu-west-1"} {
				k.region = region
				k.try(call("stolen", "tagged")).is(denied, "db:tagged with an explicit deny")
				k.try(call("stolen", "TAGGED")).is(denied, "db:tagged with an explicit deny")
				k.do(call("copy", "db"))
				k.try("ListTagsForResource?ResourceName=arn:aws:rds:us-east-1:"+k.account+":db:tagged").is(denied, "explicit deny")
			}
		})
	}
}

// TestDenyByTagOfWhatNobodyCanLookAt: a policy that denies by a tag denies what is in
// another account, or is no resource that is known here. Names that are still free are
// looked up, and have no tags.
func TestDenyByTagOfWhatNobodyCanLookAt(t *testing.T) {
	root := newWorld(t).user(t)
	having(newDB)(root)
	k := root.withPolicy(denyTagged)
	for _, call := range []string{
		"CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBInstanceIdentifier=arn:aws:rds:us-east-1:999999999999:db:db",
		"CopyDBParameterGroup?SourceDBParameterGroupIdentifier=arn:aws:rds:us-east-1:999999999999:pg:mine&TargetDBParameterGroupIdentifier=x&TargetDBParameterGroupDescription=x",
		"ListTagsForResource?ResourceName=arn:aws:rds:us-east-1:{account}:strange:db",
		"ListTagsForResource?ResourceName=arn:aws:rds:us-east-1:999999999999:db:db",
		"ListTagsForResource?ResourceName=db",
		"sns:Publish?Message=x&TopicArn=arn:aws:sns:us-east-1:999999999999:alarms",
		"sns:Publish?Message=x&TopicArn=alarms",
	} {
		k.try(call).is(denied, "with an explicit deny")
	}
	for call, code := range map[string]string{
		"DescribeDBInstances":                                                                                                    "",
		"DescribeDBInstances?DBInstanceIdentifier=db":                                                                            "",
		"DescribeDBInstances?DBInstanceIdentifier=nobody":                                                                        "DBInstanceNotFound",
		"ListTagsForResource?ResourceName=arn:aws:rds:eu-west-1:{account}:db:db":                                                 "InvalidParameterValue",
		with(newDB, "DBInstanceIdentifier=free", "OptionGroupName=default:postgres-15"):                                          "",
		"CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBInstanceIdentifier=arn:aws:rds:eu-west-1:{account}:db:db": "DBInstanceNotFound",
		"CreateTopic?Name=free":                                                                                                  "", "DescribeSecurityGroups": "",
	} {
		k.try(call).is(code, "")
	}
}

// TestDenyByTagOfLogins: what denies everything on a database denies logging in to it,
// and looking at it by a verb of the home.
func TestDenyByTagOfLogins(t *testing.T) {
	for name, made := range map[string][]string{
		"an instance": {newDB + "&EnableIAMDatabaseAuthentication=true&Tags.Tag.1.Key=team&Tags.Tag.1.Value=blue"},
		"a cluster":   {newCluster + "&EnableIAMDatabaseAuthentication=true&Tags.Tag.1.Key=team&Tags.Tag.1.Value=blue", newMember},
	} {
		t.Run(name, func(t *testing.T) {
			root := newWorld(t).user(t)
			having(made...)(root)
			d, at := root.endpointOf()
			k := root.withPolicy(denyTagged)
			root.lets(d.ResourceID, "jane", root.tokenOf(at, "jane", nil), "")
			k.lets(d.ResourceID, "jane", k.tokenOf(at, "jane", nil), "with an explicit deny")
			for _, u := range []*user{root, k} {
				r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", nil)
				sigv4.Sign(r, nil, sigv4.Credentials{AccessKeyID: u.key, SecretAccessKey: u.secret}, u.region, admin.Service, u.now())
				record := u.server.front.Begin(r, "an-id")
				identity, who, err := u.server.front.Authenticate(r, nil, record)
				if err != nil {
					t.Fatal(u.key, err)
				}
				c := u.server.front.Call(r, identity, who, "Database", "an-id", record)
				_, err = ask[admin.DatabaseAnswer](t, u.world, c, admin.VerbDatabase, admin.DatabaseRequest{Name: d.Name})
				known, refused := errors.AsType[*wire.Error](err)
				if refused != (u == k) || refused && known.Code != denied {
					t.Errorf("%s shown to %s: %v", d.Name, u.key, err)
				}
			}
		})
	}
}

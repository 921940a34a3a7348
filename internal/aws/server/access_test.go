package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/admin"
	"howdah/internal/aws/audit"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/access"
	"howdah/internal/state"
)

// limited is the same caller with a new key that has limits.
func (u *user) limited(in admin.KeyCreateRequest) *user {
	u.Helper()
	in.Account = u.account
	out, err := ask[admin.KeyCreateAnswer](u.T, u.world, u.operator(), admin.VerbKeyCreate, in)
	if err != nil {
		u.Fatal(err)
	}
	other := *u
	other.key, other.secret = out.AccessKey, out.Secret
	return &other
}

func (u *user) operator() front.Call {
	return front.Call{Now: u.now().UTC(), Who: front.Principal{Key: u.key}}
}

func (u *user) withPolicy(statements string) *user {
	u.Helper()
	return u.limited(admin.KeyCreateRequest{Name: "ci", Policy: wire.Some(`{"Version":"2012-10-17","Statement":` + strings.ReplaceAll(statements, "ACCOUNT", u.account) + `}`)})
}

const (
	denied   = "AccessDenied"
	allowAll = `{"Effect":"Allow","Action":"*","Resource":"*"}`
)

func TestReadOnlyKey(t *testing.T) {
	u := newWorld(t).user(t)
	having(newDB)(u)
	looker := u.limited(admin.KeyCreateRequest{Name: "looker", ReadOnly: true})
	looker.do(showDB)
	looker.do("DescribeEvents")
	looker.do("ListTagsForResource?ResourceName=arn:aws:rds:us-east-1:" + u.account + ":db:db")
	looker.do("GetCallerIdentity").has("Arn=arn:aws:iam::"+u.account+":user/looker", "UserId="+looker.key, "Account="+u.account)
	got := looker.try(dropDB)
	got.is(denied, "User: arn:aws:iam::"+u.account+":user/looker is not authorized to perform: rds:DeleteDBInstance on resource: arn:aws:rds:us-east-1:"+
		u.account+":db:db because no identity-based policy allows the rds:DeleteDBInstance action")
	if got.status != http.StatusForbidden {
		t.Errorf("status %d", got.status)
	}
	looker.try(with(newDB, "DBInstanceIdentifier=other")).is(denied, "db:other")
	looker.try("NoSuchAction").is("InvalidAction", "")
	u.do("GetCallerIdentity").has("Arn=arn:aws:iam::"+u.account+":root", "UserId="+u.account)
}

// TestPolicies holds what callers with policies may do against what they ask for.
func TestPolicies(t *testing.T) {
	w := newWorld(t)
	tag := "&Tags.Tag.1.Key=team&Tags.Tag.1.Value=blue"
	for _, test := range []struct {
		name, policy string
		allowed      []string
		denied       []string
	}{
		{
			name: "a list of actions", policy: `{"Effect":"Allow","Action":["rds:Describe*","rds:RebootDBInstance"],"Resource":"*"}`,
			allowed: []string{showDB, "DescribeDBClusters", "RebootDBInstance?DBInstanceIdentifier=db"},
			denied:  []string{dropDB, "StopDBInstance?DBInstanceIdentifier=db"},
		},
		{
			name: "one resource, by whatever name", policy: `[` + allowAll + `,{"Effect":"Deny","Action":"rds:*","Resource":"arn:aws:rds:*:*:db:db"}]`,
			allowed: []string{"DescribeDBClusters", "DescribeDBInstances", with(newDB, "DBInstanceIdentifier=other")},
			denied: []string{
				showDB, dropDB, "DescribeDBInstances?DBInstanceIdentifier=%20DB%20", "DeleteDBInstance?SkipFinalSnapshot=true&DBInstanceIdentifier=arn:aws:rds:us-east-1:ACCOUNT:db:db",
				"DeleteDBInstance?SkipFinalSnapshot=true&DBInstanceIdentifier=ARN:x:RDS:us-east-1:ACCOUNT:DB:db",
				"ListTagsForResource?ResourceName=arn:aws:rds:us-east-1:ACCOUNT:db:db", "ListTagsForResource?ResourceName=%20arn:x:rds:us-east-1:ACCOUNT:db:DB%20",
				"CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBInstanceIdentifier=db", "ModifyDBInstance?DBInstanceIdentifier=other&NewDBInstanceIdentifier=db",
			},
		},
		{
			name: "a prefix of names", policy: `{"Effect":"Allow","Action":"rds:*","Resource":["arn:aws:rds:*:ACCOUNT:db:test-*","arn:aws:rds:*:ACCOUNT:subgrp:default"]}`,
			allowed: []string{with(newDB, "DBInstanceIdentifier=test-1"), with(newDB, "DBInstanceIdentifier=test-2", "DBSubnetGroupName=default"), "DescribeDBInstances?DBInstanceIdentifier=test-1"},
			denied: []string{
				showDB, "DescribeDBInstances", "DescribeEvents", with(newDB, "DBInstanceIdentifier=test-3", "DBParameterGroupName=default.postgres15"),
				"ModifyDBInstance?DBInstanceIdentifier=test-1&NewDBInstanceIdentifier=free",
			},
		},
		{
			name: "tags of the resource", policy: `{"Effect":"Allow","Action":"rds:*","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/team":"blue"}}}`,
			allowed: []string{"DescribeDBInstances?DBInstanceIdentifier=tagged", "RebootDBInstance?DBInstanceIdentifier=tagged"},
			denied:  []string{showDB, dropDB, "DescribeDBInstances", with(newDB, "DBInstanceIdentifier=new") + tag},
		},
		{
			name: "RDS's own name for them", policy: `{"Effect":"Allow","Action":"rds:*","Resource":"*","Condition":{"StringLike":{"rds:db-tag/team":"bl*"}}}`,
			allowed: []string{"DescribeDBInstances?DBInstanceIdentifier=tagged"}, denied: []string{showDB},
		},
		{
			name: "tags of the request", policy: `{"Effect":"Allow","Action":"rds:*","Resource":"*","Condition":{"StringEquals":{"aws:RequestTag/team":"blue"},"ForAllValues:StringEquals":{"aws:TagKeys":["team"]}}}`,
			allowed: []string{with(newDB, "DBInstanceIdentifier=new") + tag},
			denied: []string{
				with(newDB, "DBInstanceIdentifier=new2"), with(newDB, "DBInstanceIdentifier=new2") + tag + "&Tags.Tag.2.Key=x",
				"RemoveTagsFromResource?TagKeys.member.1=team&ResourceName=arn:aws:rds:us-east-1:ACCOUNT:db:tagged",
			},
		},
		{
			name: "small classes only", policy: `[` + allowAll + `,{"Effect":"Deny","Action":"rds:*","Resource":"*","Condition":{"StringNotLikeIfExists":{"rds:DatabaseClass":"db.t3.*"}}}]`,
			allowed: []string{with(newDB, "DBInstanceIdentifier=new"), "ModifyDBInstance?DBInstanceIdentifier=db&DBInstanceClass=db.t3.small", showDB},
			denied:  []string{with(newDB, "DBInstanceIdentifier=new2", "DBInstanceClass=db.m5.large"), "ModifyDBInstance?DBInstanceIdentifier=db&DBInstanceClass=db.m5.large"},
		},
		{
			name: "Multi-AZ and not too large", policy: `{"Effect":"Allow","Action":"rds:*","Resource":"*","Condition":{"Bool":{"rds:MultiAz":"true"},"NumericLessThanEquals":{"rds:StorageSize":"50"}}}`,
			allowed: []string{with(newDB, "DBInstanceIdentifier=new", "MultiAZ=true")},
			denied:  []string{with(newDB, "DBInstanceIdentifier=new2"), with(newDB, "DBInstanceIdentifier=new2", "MultiAZ=true", "AllocatedStorage=51"), showDB},
		},
		{
			name: "from here, in this region", policy: `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":"127.0.0.0/8"},"StringEquals":{"aws:RequestedRegion":"us-east-1","aws:username":"ci"}}}`,
			allowed: []string{showDB},
		},
		{name: "from elsewhere", policy: `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"NotIpAddress":{"aws:SourceIp":"127.0.0.0/8"}}}`, denied: []string{showDB}},
		{name: "who one is, is never secret", policy: `{"Effect":"Deny","Action":"*","Resource":"*"}`, allowed: []string{"GetCallerIdentity"}, denied: []string{showDB}},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := w.user(t)
			having(newDB, with(newDB, "DBInstanceIdentifier=tagged")+tag)(root)
			u := root.withPolicy(test.policy)
			for _, call := range test.allowed {
				u.do(strings.ReplaceAll(call, "ACCOUNT", u.account))
				root.settle()
			}
			for _, call := range test.denied {
				u.try(strings.ReplaceAll(call, "ACCOUNT", u.account)).is(denied, "arn:aws:iam::"+u.account+":user/ci is not authorized")
			}
		})
	}
}

func TestExplicitDenySaysSo(t *testing.T) {
	u := newWorld(t).user(t)
	u.withPolicy(`[`+allowAll+`,{"Effect":"Deny","Action":"rds:Delete*","Resource":"*"}]`).try(dropDB).is(denied, "with an explicit deny in an identity-based policy")
}

// TestKeyVerbs: made, listed without its secret, deleted, and nothing else works
// with it afterwards.
func TestKeyVerbs(t *testing.T) {
	u := newWorld(t).user(t)
	s, op := u.server, u.operator()
	k := u.limited(admin.KeyCreateRequest{})
	k.do("DescribeDBInstances")
	list, err := ask[admin.KeyListAnswer](t, u.world, op, admin.VerbKeyList, admin.Nothing{})
	if err != nil || len(list.Keys) < 2 {
		t.Fatal(list, err)
	}
	last := list.Keys[len(list.Keys)-1]
	if last.AccessKey != k.key || last.Account != u.account || last.Name != k.key || last.CreatedBy != u.key || last.OfHome || !list.Keys[0].OfHome {
		t.Errorf("%+v", list.Keys)
	}
	everything, err := s.Store.Client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range everything.Kvs {
		if strings.Contains(string(kv.Value), k.secret) {
			t.Errorf("the secret is in %s", kv.Key)
		}
	}
	if strings.Contains(u.log.String(), k.secret) || strings.Contains(fmt.Sprint(list), k.secret) {
		t.Error("the secret was told again")
	}
	if _, err := ask[admin.Nothing](t, u.world, op, admin.VerbKeyDelete, admin.KeyRequest{AccessKey: k.key}); err != nil {
		t.Fatal(err)
	}
	k.try("DescribeDBInstances").is("InvalidClientTokenId", "does not exist")
	for key, code := range map[string]string{k.key: admin.CodeKeyNotFound, "": admin.CodeKeyNotFound, u.key: admin.CodeKeyOfHome} {
		_, err := ask[admin.Nothing](t, u.world, op, admin.VerbKeyDelete, admin.KeyRequest{AccessKey: key})
		if known, ok := errors.AsType[*admin.Error](err); !ok || known.Code != code {
			t.Errorf("delete %q: %v, want %s", key, err, code)
		}
	}
	for _, bad := range []admin.KeyCreateRequest{{Account: "1"}, {Name: "a b"}, {Policy: wire.Some("{}")}, {Policy: wire.Some(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:None":"1"}}}}`)}} {
		_, err := ask[admin.KeyCreateAnswer](t, u.world, op, admin.VerbKeyCreate, bad)
		if known, ok := errors.AsType[*admin.Error](err); !ok || known.Code != admin.CodeInvalidRequest {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestEmptyPolicy: a policy that says nothing allows nothing, so that no key is made with
// it: one would have no limits.
func TestEmptyPolicy(t *testing.T) {
	u := newWorld(t).user(t)
	create := u.world.verb(admin.VerbKeyCreate).Do
	before := len(u.server.Cache.Keys(state.KeyRoot))
	for _, body := range []string{
		`{"policy":""}`, `{"policy":" \n"}`, `{"policy":"","read_only":true}`, `{"policy":"{}"}`, `{"policy":"null"}`,
		`{"policy":"{\"Version\":\"2012-10-17\"}"}`, `{"policy":"{\"Version\":\"2012-10-17\",\"Statement\":[]}"}`,
	} {
		_, err := create(t.Context(), u.operator(), []byte(body))
		if known, ok := errors.AsType[*admin.Error](err); !ok || known.Code != admin.CodeInvalidRequest {
			t.Errorf("%s: %v", body, err)
		}
	}
	if after := len(u.server.Cache.Keys(state.KeyRoot)); after != before {
		t.Errorf("%d keys were made", after-before)
	}
	if _, err := create(t.Context(), u.operator(), []byte(`{}`)); err != nil {
		t.Errorf("a key without limits: %v", err)
	}
}

// TestForgedRecord: whoever can write the state cannot widen a key.
func TestForgedRecord(t *testing.T) {
	u := newWorld(t).user(t)
	k := u.limited(admin.KeyCreateRequest{ReadOnly: true})
	record, err := state.Load[access.Key](u.server.Cache, state.Key(k.key))
	if err != nil {
		t.Fatal(err)
	}
	forged := record.Value
	forged.ReadOnly = false
	u.put(state.Put(record.Key, forged))
	status, body := k.send("Action=DescribeDBInstances", "rds", nil)
	if status != http.StatusInternalServerError {
		t.Errorf("%d %s", status, body)
	}
}

// TestAuditLog: every call is in it, with who, what, from where and the outcome.
func TestAuditLog(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	began := time.Now().Add(-time.Second)
	u.do(newDB)
	u.try(newDB).is("DBInstanceAlreadyExists", "")
	k := u.limited(admin.KeyCreateRequest{Name: "looker", ReadOnly: true})
	k.try(with(dropDB, "Password="+password)).is(denied, "")
	stranger := *u
	stranger.secret = "wrong"
	stranger.try(showDB).is("SignatureDoesNotMatch", "")
	unknown := *u
	unknown.key = "NOSUCHKEY"
	unknown.try(showDB).is("InvalidClientTokenId", "")
	u.try("NoSuchAction?A=b").is("InvalidAction", "")
	var all []audit.Record
	if err := audit.Read(w.server.Home.AuditDir(), began, func(r audit.Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	root := "arn:aws:iam::" + u.account + ":root"
	want := []audit.Record{
		{User: root, AccessKey: u.key, Action: "CreateDBInstance", Status: 200},
		{User: root, AccessKey: u.key, Action: "CreateDBInstance", Status: 400, Code: "DBInstanceAlreadyExists"},
		{User: "arn:aws:iam::" + u.account + ":user/looker", AccessKey: k.key, Action: "DeleteDBInstance", Status: 403, Code: denied},
		{AccessKey: u.key, Status: 403, Code: "SignatureDoesNotMatch"},
		{AccessKey: "NOSUCHKEY", Status: 403, Code: "InvalidClientTokenId"},
		{User: root, AccessKey: u.key, Action: "NoSuchAction", Status: 400, Code: "InvalidAction"},
	}
	if len(all) != len(want) {
		t.Fatalf("%d records: %+v", len(all), all)
	}
	for i, r := range all {
		got := audit.Record{User: r.User, AccessKey: r.AccessKey, Action: r.Action, Status: r.Status, Code: r.Code}
		if fmt.Sprint(got) != fmt.Sprint(want[i]) || r.Source != "127.0.0.1" || r.RequestID == "" || r.UserAgent == "" {
			t.Errorf("%d: %+v, want %+v", i, r, want[i])
		}
		if r.User != "" && (r.Account != u.account || r.Region != testRegion || r.Service != "rds") {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if p := all[0].Parameters; p["MasterUserPassword"] != "****" || p["DBInstanceIdentifier"] != "db" {
		t.Errorf("%v", p)
	}
	if p := all[2].Parameters; p["Password"] != "" || p["DBInstanceIdentifier"] != "db" {
		t.Errorf("%v", p)
	}
	if all[5].Parameters != nil {
		t.Errorf("parameters of nobody knows what: %v", all[5].Parameters)
	}
	info, err := os.Stat(filepath.Join(w.server.Home.AuditDir(), string(audit.Changed)))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

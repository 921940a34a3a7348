package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/admin"
	"howdah/internal/aws/audit"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/scram"
	"howdah/internal/identity/secret"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// What the tests call of Secrets Manager.
const (
	secretName          = "secretsmanager"
	errNoSecret         = "ResourceNotFoundException"
	errSecretRequest    = "InvalidRequestException"
	errSecretParameter  = "InvalidParameterException"
	errSecretPagination = "InvalidNextTokenException"
)

const (
	newManaged        = "CreateDBInstance?DBInstanceIdentifier=db&DBInstanceClass=db.t3.micro&Engine=postgres&AllocatedStorage=20&MasterUsername=boss&ManageMasterUserPassword=true"
	newManagedCluster = "CreateDBCluster?DBClusterIdentifier=aura&Engine=aurora-postgresql&MasterUsername=boss&ManageMasterUserPassword=true"
	shownSecret       = "DBInstances/DBInstance/MasterUserSecret/"
)

// asks sends an action of Secrets Manager, and answers the status and what came.
func (u *user) asks(action, body string) (int, map[string]any) {
	u.Helper()
	r, err := http.NewRequestWithContext(u.Context(), http.MethodPost, u.http.URL+"/", strings.NewReader(body))
	if err != nil {
		u.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "secretsmanager."+action)
	sigv4.Sign(r, []byte(body), sigv4.Credentials{AccessKeyID: u.key, SecretAccessKey: u.secret}, u.region, secretName, u.now())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		u.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	var values map[string]any
	if _, err := text.ReadFrom(answer.Body); err != nil || json.Unmarshal(text.Bytes(), &values) != nil {
		u.Fatalf("%s: %v: %s", action, err, text.String())
	}
	return answer.StatusCode, values
}

// gets is asks for what has to work.
func (u *user) gets(action, body string) map[string]any {
	u.Helper()
	status, values := u.asks(action, body)
	if status != http.StatusOK {
		u.Fatalf("%s %s: %d %v", action, body, status, values)
	}
	return values
}

// refused asks for what must not work.
func (u *user) refused(action, body, code string) {
	u.Helper()
	if status, values := u.asks(action, body); status != http.StatusBadRequest || values["__type"] != code || values["message"] == "" {
		u.Errorf("%s %s: %d %v, want %s", action, body, status, values, code)
	}
}

// secretOf is the only secret of a user.
func (u *user) onlySecret() string {
	u.Helper()
	all := u.gets("ListSecrets", "{}")["SecretList"].([]any)
	if len(all) != 1 {
		u.Fatalf("%d secrets: %v", len(all), all)
	}
	return all[0].(map[string]any)["ARN"].(string)
}

// passwordAt is the password of a stage; "": there is none.
func (u *user) passwordAt(arn, stage string) string {
	u.Helper()
	status, values := u.asks("GetSecretValue", fmt.Sprintf(`{"SecretId":%q,"VersionStage":%q}`, arn, stage))
	if status != http.StatusOK {
		return ""
	}
	var value struct{ Username, Password string }
	if err := json.Unmarshal([]byte(values["SecretString"].(string)), &value); err != nil || value.Username != "boss" {
		u.Fatalf("%v, %v", values, err)
	}
	if !slices.Contains(values["VersionStages"].([]any), any(stage)) {
		u.Errorf("%s has the stages %v", stage, values["VersionStages"])
	}
	return value.Password
}

// takes says whether the verifier that the database is given goes with a password.
func (u *user) takes(password string) bool {
	u.Helper()
	return scram.Matches(password, u.instanceRecord("db").Verifier)
}

// A managed password is made with the instance, works, is shown to who may see it, and goes
// with the instance.
func TestAManagedMasterPassword(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	u := w.user(t)
	u.do(newManaged).has("DBInstance/MasterUserSecret/SecretStatus=creating")
	u.settle()
	u.do(showDB).has(shownSecret + "SecretStatus=active")
	arn := u.onlySecret()
	u.do(showDB).has(shownSecret + "SecretArn=" + arn)
	first := u.passwordAt(arn, secret.Current)
	if len(first) < 20 || !u.takes(first) {
		t.Errorf("the password %q is not that of the database", first)
	}
	described := u.gets("DescribeSecret", fmt.Sprintf(`{"SecretId":%q}`, arn))
	if described["OwningService"] != "rds" || described["RotationEnabled"] != true || described["NextRotationDate"].(float64) != described["CreatedDate"].(float64)+7*24*3600 {
		t.Errorf("%v", described)
	}
	name := described["Name"].(string)
	for _, id := range []string{name, arn, arn[:len(arn)-7]} {
		u.gets("GetSecretValue", fmt.Sprintf(`{"SecretId":%q}`, id))
	}
	// Who read it is on record, and what was read is nowhere.
	var seen []audit.Record
	err := audit.Read(w.server.Home.AuditDir(), time.Time{}, func(r audit.Record) error {
		if strings.Contains(fmt.Sprint(r), first) {
			t.Errorf("the password is in the audit log: %+v", r)
		}
		if r.Action == "GetSecretValue" {
			seen = append(seen, r)
		}
		return nil
	})
	if err != nil || len(seen) != 4 || seen[0].Parameters["SecretId"] != arn || seen[0].AccessKey != u.key || seen[0].Service != secretName {
		t.Errorf("%v: %+v", err, seen)
	}
	if strings.Contains(w.log.String(), first) {
		t.Error("the password is in the log")
	}
	kept, err := w.server.Store.Client.Get(t.Context(), "/", clientv3.WithPrefix())
	if err != nil || slices.ContainsFunc(kept.Kvs, func(kv *mvccpb.KeyValue) bool { return strings.Contains(string(kv.Value), first) }) {
		t.Errorf("the password is in the state: %v", err)
	}
	other := w.user(t)
	other.refused("GetSecretValue", fmt.Sprintf(`{"SecretId":%q}`, arn), errNoSecret)
	if all := other.gets("ListSecrets", "")["SecretList"].([]any); len(all) != 0 {
		t.Errorf("another account sees %v", all)
	}
	u.do("DeleteDBInstance?DBInstanceIdentifier=db&SkipFinalSnapshot=true")
	u.settle()
	u.refused("GetSecretValue", fmt.Sprintf(`{"SecretId":%q}`, arn), errNoSecret)
}

// Until the database has taken the next password the one before is current; then the next
// one is, at once.
func TestAManagedPasswordIsRotated(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	u := w.user(t)
	having(newManaged)(u)
	arn := u.onlySecret()
	first := u.passwordAt(arn, secret.Current)
	u.refused("RotateSecret", fmt.Sprintf(`{"SecretId":%q,"RotationLambdaARN":"arn:aws:lambda:x"}`, arn), errSecretParameter)
	u.refused("RotateSecret", fmt.Sprintf(`{"SecretId":%q,"RotationRules":{"AutomaticallyAfterDays":0}}`, arn), errSecretParameter)
	u.refused("RotateSecret", fmt.Sprintf(`{"SecretId":%q,"ClientRequestToken":"short"}`, arn), errSecretParameter)
	// Whoever did not hear the answer, and sends the call again, has not changed it twice.
	rotate := fmt.Sprintf(`{"SecretId":%q,"RotationRules":{"AutomaticallyAfterDays":30},"ClientRequestToken":"0123456789abcdef0123456789abcdef"}`, arn)
	for range 2 {
		if version := u.gets("RotateSecret", rotate)["VersionId"]; version != "0123456789abcdef0123456789abcdef" {
			t.Errorf("the version is called %v", version)
		}
	}
	next := u.passwordAt(arn, secret.Pending)
	if next == "" || next == first || u.passwordAt(arn, secret.Current) != first || u.takes(first) || !u.takes(next) {
		t.Errorf("at first %q, then %q, is current %q", first, next, u.passwordAt(arn, secret.Current))
	}
	u.refused("RotateSecret", fmt.Sprintf(`{"SecretId":%q}`, arn), errSecretRequest)
	u.do(showDB).has(shownSecret+"SecretStatus=rotating", "DBInstances/DBInstance/DBInstanceStatus=resetting-master-credentials")
	// Nobody has written the secret since: what the primary says is enough.
	u.layOut(u.database("db"), nil)
	if u.passwordAt(arn, secret.Current) != next || u.passwordAt(arn, secret.Previous) != first || u.passwordAt(arn, secret.Pending) != "" {
		t.Errorf("taken, and current is %q", u.passwordAt(arn, secret.Current))
	}
	u.settle()
	u.do(showDB).has(shownSecret + "SecretStatus=active")
	u.gets("RotateSecret", rotate)
	if u.passwordAt(arn, secret.Current) != next {
		t.Error("the same call has changed it again")
	}
	if r, err := u.server.rds.Databases.SecretOf(u.instanceRecord("db").Common); err != nil || r.Value.Pending != nil || r.Value.Days != 30 {
		t.Errorf("%+v, %v", r.Value, err)
	}
	u.do(with(modifyDB, "RotateMasterUserPassword=true", "ApplyImmediately=true")).has("DBInstance/MasterUserSecret/SecretStatus=rotating")
	u.settle()
	if now := u.passwordAt(arn, secret.Current); now == next || !u.takes(now) {
		t.Errorf("by RDS: current is %q", now)
	}
	if versions := u.gets("ListSecretVersionIds", fmt.Sprintf(`{"SecretId":%q}`, arn))["Versions"].([]any); len(versions) != 2 {
		t.Errorf("versions %v", versions)
	}
}

// A database whose storage is full may be modified, but takes one password after the other:
// of two that are under way nobody would know which one it has.
func TestOneRotationAtATime(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	u := w.user(t)
	having(newManaged)(u)
	arn := u.onlySecret()
	full := func() {
		u.see("db", func(s *scene) { s.each(func(r *member.Report) { r.Problem, r.OwnerSerial = member.StorageFull, 1 }) })
	}
	full()
	rotate := with(modifyDB, "RotateMasterUserPassword=true", "ApplyImmediately=true")
	u.do(rotate)
	full()
	next := u.passwordAt(arn, secret.Pending)
	u.try(rotate).is("InvalidDBInstanceState", "taking the password of its last rotation")
	if u.passwordAt(arn, secret.Pending) != next || !u.takes(next) {
		t.Error("the password that the database may take at any moment is not kept any more")
	}
	u.settle()
	if u.passwordAt(arn, secret.Current) != next {
		t.Error("it is not current")
	}
}

// It is changed by itself when it is due, and where the home was restored from a backup of
// before the last change.
func TestAManagedPasswordIsRotatedByItself(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	u := w.user(t)
	having(newManaged)(u)
	arn := u.onlySecret()
	first := u.passwordAt(arn, secret.Current)
	u.settle()
	if now := u.passwordAt(arn, secret.Current); now != first {
		t.Fatal("it is changed before it is due")
	}
	w.shift += 8 * 24 * time.Hour
	for _, zone := range []string{"a", "b", "c"} {
		w.host(zone)
	}
	u.settle()
	second := u.passwordAt(arn, secret.Pending)
	if second == "" || !u.takes(second) {
		t.Fatal("it was due, and is not changed")
	}
	u.settle()
	if now := u.passwordAt(arn, secret.Current); now != second {
		t.Fatalf("current is %q, want %q", now, second)
	}
	i := u.instanceRecord("db")
	i.PasswordSerial += 3
	u.put(state.Put(look.InstanceKey(i), i))
	u.settle()
	u.settle()
	if now := u.passwordAt(arn, secret.Current); now == second || !u.takes(now) {
		t.Errorf("nobody knows the password of the database: current is %q", now)
	}
}

// The status of a secret speaks of the password, not of the process: whoever stops a
// database, or looks in the middle of a failover, has a password that works as soon as there
// is somebody to log in to. One that goes with no verifier does not.
func TestTheStatusOfASecretIsThatOfItsPassword(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	u := w.user(t)
	having(newManaged)(u)
	arn := u.onlySecret()
	status := func(when, want string) {
		t.Helper()
		if got := u.do(showDB).text(shownSecret + "SecretStatus"); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	status("available", secret.Active)
	u.see("db", func(s *scene) { s.leader = "" })
	status("nobody leads", secret.Active)
	u.settle()
	u.do("StopDBInstance?DBInstanceIdentifier=db")
	u.settle()
	u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=stopped")
	status("stopped", secret.Active)
	w.shift += time.Hour
	status("stopped for long", secret.Active)
	u.do("StartDBInstance?DBInstanceIdentifier=db")
	for _, zone := range []string{"a", "b", "c"} {
		w.host(zone)
	}
	u.settle()
	status("started", secret.Active)

	i := u.instanceRecord("db")
	i.PasswordSerial += 3
	u.put(state.Put(look.InstanceKey(i), i))
	status("nobody knows the password", secret.Impaired)
	u.settle()
	u.settle()
	status("changed", secret.Active)
	if now := u.passwordAt(arn, secret.Current); !u.takes(now) {
		t.Errorf("current is %q", now)
	}
}

func TestWhoManagesAMasterPassword(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	u := w.user(t)
	having(newDB)(u)
	u.try(with(modifyDB, "RotateMasterUserPassword=true", "ApplyImmediately=true")).is(badMix, "not managed")
	u.do(with(modifyDB, "ManageMasterUserPassword=true")).has("DBInstance/MasterUserSecret/SecretStatus=creating")
	u.settle()
	u.do(showDB).has(shownSecret + "SecretStatus=active")
	u.do(with(modifyDB, "ManageMasterUserPassword=true", "BackupRetentionPeriod=0", "PromotionTier=3")) // as it is
	u.settle()
	arn := u.onlySecret()
	if now := u.passwordAt(arn, secret.Current); !u.takes(now) {
		t.Errorf("current is %q", now)
	}
	u.try(with(modifyDB, "MasterUserPassword="+password)).is(badMix, "ManageMasterUserPassword")
	u.try(with(modifyDB, "RotateMasterUserPassword=true")).is(badMix, "ApplyImmediately")
	u.try(with(modifyDB, "ManageMasterUserPassword=false")).is(badMix, "MasterUserPassword must be provided when ManageMasterUserPassword is set to false.")
	u.do(with(modifyDB, "ManageMasterUserPassword=false", "MasterUserPassword="+password)).has("!DBInstance/MasterUserSecret")
	u.settle()
	if !u.takes(password) {
		t.Error("the owner's password is not in force")
	}
	u.refused("DescribeSecret", fmt.Sprintf(`{"SecretId":%q}`, arn), errNoSecret)
	u.do(with(newDB, "DBInstanceIdentifier=again"))
	u.do("CreateDBInstanceReadReplica?DBInstanceIdentifier=read&SourceDBInstanceIdentifier=db")
	u.settle()
	u.try("ModifyDBInstance?DBInstanceIdentifier=read&ManageMasterUserPassword=true").is(badMix, "read replica")
}

func TestAManagedClusterPassword(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	u := w.user(t)
	u.do(newManagedCluster)
	u.do(newMember)
	u.try(with(newMember, "DBInstanceIdentifier=aura-9")+"&ManageMasterUserPassword=true").is(badMix, "master user password")
	u.settle()
	u.do("DescribeDBClusters").has("DBClusters/DBCluster/MasterUserSecret/SecretStatus=active")
	u.do("DescribeDBInstances").has("!DBInstances/DBInstance/MasterUserSecret")
	arn := u.onlySecret()
	if !strings.Contains(arn, ":secret:rds!cluster-") {
		t.Errorf("it is called %s", arn)
	}
	first := u.passwordAt(arn, secret.Current)
	u.do("ModifyDBCluster?DBClusterIdentifier=aura&RotateMasterUserPassword=true&ApplyImmediately=true")
	u.settle()
	if now := u.passwordAt(arn, secret.Current); now == first || !scram.Matches(now, u.clusterRecord("aura").Verifier) {
		t.Errorf("current is %q", now)
	}
	u.try("ModifyDBInstance?DBInstanceIdentifier=aura-1&RotateMasterUserPassword=true&ApplyImmediately=true").is(badMix, "cluster")
}

// Policies decide who sees a password: a key that may only look does not.
func TestWhoSeesAManagedPassword(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	u := w.user(t)
	having(newManaged)(u)
	arn := u.onlySecret()
	value := fmt.Sprintf(`{"SecretId":%q}`, arn)
	u.limited(admin.KeyCreateRequest{ReadOnly: true}).refused("GetSecretValue", value, "AccessDeniedException")
	u.limited(admin.KeyCreateRequest{ReadOnly: true}).refused("GetSecretValue", `{"SecretId":"nothing"}`, "AccessDeniedException")
	one := u.withPolicy(`{"Effect":"Allow","Action":"secretsmanager:GetSecretValue","Resource":"` + arn + `"}`)
	one.gets("GetSecretValue", value)
	one.refused("DescribeSecret", value, "AccessDeniedException")
	one.refused("ListSecrets", "{}", "AccessDeniedException")
	tagged := u.withPolicy(`[{"Effect":"Allow","Action":"secretsmanager:*","Resource":"*"}, {"Effect":"Deny","Action":"*","Resource":"*",
		"Condition":{"StringLike":{"aws:ResourceTag/aws:rds:primaryDBInstanceArn":"*:db:db"}}}]`)
	tagged.refused("GetSecretValue", value, "AccessDeniedException")
	if status, values := u.asks("GetSecretValue", `{"SecretId":3}`); status != http.StatusBadRequest || values["__type"] != "SerializationException" {
		t.Errorf("%d %v", status, values)
	}
	u.refused("GetSecretValue", `{}`, errSecretParameter)
	u.refused("PutSecretValue", value, errSecretRequest)
	u.refused("MakeCoffee", value, "UnknownOperationException")
	u.refused("ListSecrets", `{"MaxResults":1000}`, errSecretParameter)
	u.refused("ListSecrets", `{"NextToken":"?"}`, errSecretPagination)
	u.refused("ListSecrets", `{"Filters":[{"Key":"colour","Values":["red"]}]}`, errSecretParameter)
	for filter, want := range map[string]int{
		`{"Key":"owning-service","Values":["rds"]}`: 1, `{"Key":"name","Values":["rds!"]}`: 1, `{"Key":"name","Values":["!rds!"]}`: 0,
		`{"Key":"tag-value","Values":["arn:aws:rds:"]}`: 1, `{"Key":"tag-key","Values":["team"]}`: 0, `{"Key":"description","Values":["INSTANCE"]}`: 1,
	} {
		if all := u.gets("ListSecrets", `{"Filters":[`+filter+`]}`)["SecretList"].([]any); len(all) != want {
			t.Errorf("by %s: %d", filter, len(all))
		}
	}
	forged := *u
	forged.secret = "wrong"
	forged.refused("GetSecretValue", value, "InvalidSignatureException")
}

// Pages hold together.
func TestPagesOfSecrets(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	u := w.user(t)
	for n := range 5 {
		u.do(with(newManaged, fmt.Sprintf("DBInstanceIdentifier=db-%d", n)))
	}
	for _, order := range []string{"asc", "desc"} {
		var seen []string
		token := ""
		for range 5 {
			page := u.gets("ListSecrets", fmt.Sprintf(`{"MaxResults":2,"SortOrder":%q%s}`, order, token))
			for _, s := range page["SecretList"].([]any) {
				seen = append(seen, s.(map[string]any)["Name"].(string))
			}
			next, more := page["NextToken"].(string)
			if !more {
				break
			}
			token = fmt.Sprintf(`,"NextToken":%q`, next)
		}
		sorted := slices.Sorted(slices.Values(seen))
		if order == "desc" {
			slices.Reverse(sorted)
		}
		if len(slices.Compact(sorted)) != 5 || !slices.Equal(seen, sorted) {
			t.Errorf("%s: %v", order, seen)
		}
	}
}

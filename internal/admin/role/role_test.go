package role_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client/testserver"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/bucket"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/testkit"
)

// world is a home on one machine, whose hosts pretend.
type world struct {
	*testing.T
	*testserver.Server
}

func must[Out any](w world, verb string, in any) Out {
	w.Helper()
	return testserver.Must[Out](w.T, w.Server, verb, in)
}

// refused checks that a call is refused with a code, and with words in the message or the hint, and that
// no secret is told.
func (w world) refused(verb string, in any, code string, words ...string) {
	w.Helper()
	err := testserver.Refused(w.T, w.Server, verb, in, code, words...)
	if err != nil && strings.Contains(err.Error(), "s3cret") {
		w.Errorf("%s tells the secret: %v", verb, err)
	}
}

var exports = admin.RoleAddRequest{
	Name: "exports", Endpoint: "https://s3.example.com:9000/", Region: "eu-west-1", Bucket: "reports", Prefix: "orders", AccessKey: "AK", Secret: "s3cret",
}

// A role goes from being made to being removed, and nobody is told its secret.
func TestTheLifeOfARole(t *testing.T) {
	t.Parallel()
	w := world{t, testserver.Start(t, testserver.Options{})}
	made := must[admin.Role](w, admin.VerbRoleAdd, exports)
	if made.ARN != "arn:aws:iam::123456789012:role/exports" || made.Prefix != "orders/" || made.Endpoint != "https://s3.example.com:9000" {
		t.Errorf("made %+v", made)
	}
	w.refused(admin.VerbRoleAdd, exports, admin.CodeRoleExists, "--replace")
	other := exports
	other.Account = "000000000009"
	must[admin.Role](w, admin.VerbRoleAdd, other)

	// A database has the first one, and may not lose it by accident.
	in := &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: wire.Some("orders"), DBInstanceClass: wire.Some("db.t3.micro"), Engine: wire.Some("postgres"), AllocatedStorage: wire.Some(int32(20)),
		MasterUsername: wire.Some("app"), MasterUserPassword: wire.Some("secret-password"), MultiAZ: wire.Some(false),
	}
	if err := w.Client.RDS(t.Context(), "CreateDBInstance", in, &rds.CreateDBInstanceResult{}); err != nil {
		t.Fatal(err)
	}
	role := &rds.AddRoleToDBInstanceMessage{DBInstanceIdentifier: wire.Some("orders"), RoleArn: wire.Some(made.ARN), FeatureName: wire.Some("s3Export")}
	testkit.Eventually(t, 30*time.Second, func() error {
		return w.Client.RDS(t.Context(), "AddRoleToDBInstance", role, nil)
	})
	list := must[admin.RoleListAnswer](w, admin.VerbRoleList, admin.Nothing{}).Roles
	if len(list) != 2 || list[0].Account != "000000000009" || len(list[0].Databases) != 0 {
		t.Fatalf("list %+v", list)
	}
	if len(list[1].Databases) != 1 || list[1].Databases[0] != (admin.RoleUse{Database: "orders", Region: w.Home.Region, Feature: "s3Export"}) {
		t.Errorf("it has %+v", list[1].Databases)
	}
	w.refused(admin.VerbRoleRemove, admin.RoleRequest{Name: "exports"}, admin.CodeRoleInUse, "orders", "RemoveRoleFromDBInstance")
	must[admin.Role](w, admin.VerbRoleRemove, admin.RoleRequest{Account: "000000000009", Name: "exports"})
}

// Only what is whole and safe becomes a role.
func TestWhatIsNoRole(t *testing.T) {
	t.Parallel()
	w := world{t, testserver.Start(t, testserver.Options{NoHosts: true})}
	for what, change := range map[string]func(*admin.RoleAddRequest){
		"URL":        func(r *admin.RoleAddRequest) { r.Endpoint = "s3.example.com" },
		"a path":     func(r *admin.RoleAddRequest) { r.Endpoint = "https://s3.example.com/b" },
		"bucket":     func(r *admin.RoleAddRequest) { r.Bucket = "a/b" },
		"prefix":     func(r *admin.RoleAddRequest) { r.Prefix = "a/../b" },
		"access key": func(r *admin.RoleAddRequest) { r.AccessKey = "" },
		"secret":     func(r *admin.RoleAddRequest) { r.Secret = "" },
		"PEM":        func(r *admin.RoleAddRequest) { r.CA = "x" },
		"name":       func(r *admin.RoleAddRequest) { r.Name = "a/b" },
		"account":    func(r *admin.RoleAddRequest) { r.Account = "12" },
	} {
		in := exports
		change(&in)
		w.refused(admin.VerbRoleAdd, in, admin.CodeInvalidRequest, what)
	}
	w.refused(admin.VerbRoleRemove, admin.RoleRequest{Name: "exports"}, admin.CodeRoleNotFound)
	w.refused(admin.VerbRoleRemove, admin.RoleRequest{Name: "../x"}, admin.CodeRoleNotFound)

	// One that is replaced opens with the new secret, and one that is removed is gone.
	must[admin.Role](w, admin.VerbRoleAdd, exports)
	again := exports
	again.Bucket, again.Secret, again.Replace = "others", "new", true
	must[admin.Role](w, admin.VerbRoleAdd, again)
	of := spec.Common{Scope: spec.Scope{Account: "123456789012"}, Name: "orders", Roles: []spec.Role{{ARN: "arn:aws:iam::123456789012:role/exports", Feature: member.Export}}}
	open := func(of spec.Common) (string, error) {
		access, err := bucket.Open(context.WithoutCancel(t.Context()), w.Store, w.Home.SealKey, of, member.Export)
		return access.Bucket + " " + access.Secret, err
	}
	if got, err := open(of); err != nil || got != "others new" {
		t.Errorf("replaced, it opens %q, %v", got, err)
	}
	thief := of
	thief.Account = "000000000009"
	if got, err := open(thief); !errors.Is(err, member.ErrNoRole) {
		t.Errorf("another account opens %q, %v", got, err)
	}
	must[admin.Role](w, admin.VerbRoleRemove, admin.RoleRequest{Name: "exports"})
	if got, err := open(of); !errors.Is(err, member.ErrNoRole) {
		t.Errorf("removed, it opens %q, %v", got, err)
	}
}

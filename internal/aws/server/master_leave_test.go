package server

import (
	"fmt"
	"testing"

	"howdah/internal/identity/secret"
	"howdah/internal/model/member"
)

// An owner takes the password back while a rotation is under way, and has it managed again: until
// the database says what it has taken, everything that it may have can be read.
func TestAPasswordThatIsTakenBackDuringARotation(t *testing.T) {
	w := newWorld(t)
	w.shift = toAfternoon()
	u := w.user(t)
	having(newManaged)(u)
	arn := u.onlySecret()
	has := func(serial int64) {
		t.Helper()
		u.see("db", func(s *scene) {
			s.each(func(r *member.Report) { r.Problem, r.OwnerSerial = member.StorageFull, serial })
		})
	}
	keep := func() {
		t.Helper()
		house := u.server.rds.Upkeep.House()
		if house.Keep(t.Context()); len(house.Failed) > 0 {
			t.Fatal(house.Failed)
		}
	}
	read := func(version any) bool {
		status, _ := u.asks("GetSecretValue", fmt.Sprintf(`{"SecretId":%q,"VersionId":%q}`, arn, version))
		return status == 200
	}
	has(1)
	first := u.passwordAt(arn, secret.Current)
	rotated := u.gets("RotateSecret", fmt.Sprintf(`{"SecretId":%q}`, arn))["VersionId"]
	has(1)
	pending := u.passwordAt(arn, secret.Pending)
	u.do(with(modifyDB, "ManageMasterUserPassword=false", "MasterUserPassword="+password)).has("!DBInstance/MasterUserSecret")
	has(1)
	keep()
	if u.passwordAt(arn, secret.Current) != first || u.passwordAt(arn, secret.Pending) != pending || !u.takes(password) {
		t.Error("what the database may have cannot be read any more")
	}
	u.refused("RotateSecret", fmt.Sprintf(`{"SecretId":%q}`, arn), errSecretRequest)
	has(2) // which it took before it heard of the owner's
	keep()
	if u.passwordAt(arn, secret.Current) != pending {
		t.Error("what the database has is not current")
	}
	u.do(with(modifyDB, "ManageMasterUserPassword=true"))
	has(2)
	again := u.passwordAt(arn, secret.Pending)
	if !u.takes(again) || !read(rotated) || u.onlySecret() != arn {
		t.Error("managed again, and what the database has cannot be read")
	}
	u.do(with(modifyDB, "ManageMasterUserPassword=false", "MasterUserPassword="+password))
	has(u.instanceRecord("db").PasswordSerial)
	gone := func() {
		t.Helper()
		u.refused("DescribeSecret", fmt.Sprintf(`{"SecretId":%q}`, arn), errNoSecret)
		if all := u.gets("ListSecrets", `{}`)["SecretList"].([]any); len(all) > 0 {
			t.Errorf("listed: %v", all)
		}
	}
	gone() // before the chore has removed it, too
	u.do(with(modifyDB, "ManageMasterUserPassword=true"))
	if u.onlySecret() == arn {
		t.Error("managed again by a secret that was gone")
	}
	u.do(with(modifyDB, "ManageMasterUserPassword=false", "MasterUserPassword="+password))
	has(u.instanceRecord("db").PasswordSerial)
	keep()
	gone()
}

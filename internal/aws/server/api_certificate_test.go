package server

import (
	"bytes"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/upkeep"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/authority"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

const (
	rotateNow = "ApplyPendingMaintenanceAction?ApplyAction=ca-certificate-rotation&OptInType=immediate&ResourceIdentifier="
	rotateAt  = "ApplyPendingMaintenanceAction?ApplyAction=ca-certificate-rotation&OptInType=next-maintenance&ResourceIdentifier="
	rotateNot = "ApplyPendingMaintenanceAction?ApplyAction=ca-certificate-rotation&OptInType=undo-opt-in&ResourceIdentifier="
	pendingCA = onePending + "PendingMaintenanceActionDetails/PendingMaintenanceAction/"
	shownCA   = "DBInstances/DBInstance/CACertificateIdentifier="
	waitingCA = "DBInstances/DBInstance/PendingModifiedValues/CACertificateIdentifier="
)

// next has the operator make a newer authority of the home's line.
func (w *world) next() string {
	w.Helper()
	made, err := ask[admin.Authority](w.T, w, front.Call{Now: w.now()}, admin.VerbAuthorityCreate, admin.AuthorityRequest{})
	if err != nil {
		w.Fatal(err)
	}
	return made.Name
}

// authority makes one of this name.
func (w *world) authority(name string) {
	w.Helper()
	if err := w.server.rds.Authorities.Make(w.Context(), name); err != nil {
		w.Fatal(err)
	}
}

// certificates is what the bundle for clients holds.
func (w *world) certificates() int {
	n := 0
	for rest := w.server.Bundle(); ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return n
		}
	}
}

func TestCertificateOfAnInstanceIsWhatItsServerShows(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	w.authority("rds-ca-rsa2048-g1")
	u.do(with(newDB, "CACertificateIdentifier=rds-ca-rsa2048-g1")).has("DBInstance/CACertificateIdentifier=rds-ca-rsa2048-g1", "!DBInstance/CertificateDetails")
	u.settle()
	u.do(showDB).has(shownCA+"rds-ca-rsa2048-g1", "DBInstances/DBInstance/CertificateDetails/CAIdentifier=rds-ca-rsa2048-g1",
		"DBInstances/DBInstance/CertificateDetails/ValidTill=2027-11-22T00:00:00.000Z", "!DBInstances/DBInstance/PendingModifiedValues/CACertificateIdentifier")
	w.next()
	u.do(showPending).has(noPending) // of another line
}

func TestModifyTheAuthority(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	w.authority("rds-ca-ecc384-g1")
	u.do(with(newDB, "MultiAZ=true"))
	u.settle()
	u.do(modifyDB+"&CACertificateIdentifier=rds-ca-ecc384-g1").has("DBInstance/CACertificateIdentifier=howdah-ca", "DBInstance/PendingModifiedValues/CACertificateIdentifier=rds-ca-ecc384-g1", "DBInstance/DBInstanceStatus=available")
	u.do(modifyDB+"&CACertificateIdentifier=howdah-ca").has("!DBInstance/PendingModifiedValues/CACertificateIdentifier", "DBInstance/DBInstanceStatus=available")
	u.do(modifyDB+"&ApplyImmediately=true&CACertificateIdentifier=rds-ca-ecc384-g1").has("DBInstance/CACertificateIdentifier=howdah-ca",
		"DBInstance/PendingModifiedValues/CACertificateIdentifier=rds-ca-ecc384-g1", "DBInstance/DBInstanceStatus=modifying")
	if got := u.instanceRecord("db"); got.Restart != 0 || got.CACertificate != "rds-ca-ecc384-g1" {
		t.Errorf("without a restart: %+v", got)
	}
	u.settle()
	u.do(showDB).has(shownCA+"rds-ca-ecc384-g1", "DBInstances/DBInstance/DBInstanceStatus=available", "!DBInstances/DBInstance/PendingModifiedValues/CACertificateIdentifier")
	u.do(modifyDB + "&ApplyImmediately=true&CACertificateIdentifier=howdah-ca&CertificateRotationRestart=true")
	if got := u.instanceRecord("db"); got.Restart != 1 {
		t.Errorf("with a restart: %+v", got)
	}
	u.try(modifyDB+"&ApplyImmediately=true&CACertificateIdentifier=rds-ca-2019").is("InvalidDBInstanceState", "not in available state")
	u.settle()
	u.try(modifyDB+"&CACertificateIdentifier=rds-ca-2019").is("CertificateNotFound", "rds-ca-2019. There are: howdah-ca, rds-ca-ecc384-g1")
	u.try(modifyDB+"&CACertificateIdentifier=").is("CertificateNotFound", "howdah-ca")
}

func TestCertificateIsRotatedInTheWindow(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	sunday := at(t, "2026-11-22T12:00:00Z")
	monday := at(t, "2026-11-23T05:30:00Z")
	w.at(sunday)
	u.do(with(newDB, "MultiAZ=true", "PreferredMaintenanceWindow=mon:05:00-mon:06:00", "PreferredBackupWindow=01:00-02:00"))
	u.settle()
	arn := u.fill(instanceARN)
	u.try(rotateNow+arn).is("ResourceNotFoundFault", "no pending maintenance action")
	if name := w.next(); name != "howdah-ca-g2" {
		t.Errorf("the second is %s", name)
	}
	w.keep()
	w.keep()
	u.do(showPending).has(onePending+"ResourceIdentifier="+arn, pendingCA+"Action=ca-certificate-rotation",
		pendingCA+"Description=Rotation of the server certificate from howdah-ca to howdah-ca-g2, without a restart", "!"+pendingCA+"CurrentApplyDate", "!"+pendingCA+"OptInStatus")
	u.do("DescribeEvents?EventCategories.EventCategory.1=maintenance&StartTime=2026-11-22T00:00:00Z&EndTime=2026-11-24T00:00:00Z").has("Events/Event#1",
		"Events/Event/Message=Amazon RDS DB instance's server certificate requires rotation through a pending maintenance action.")
	w.at(monday)
	w.keep()
	if got := u.instanceRecord("db"); got.CACertificate != "howdah-ca" {
		t.Errorf("rotated although nobody wanted it: %+v", got)
	}
	w.at(sunday)
	u.do(rotateAt+arn).has("ResourcePendingMaintenanceActions/PendingMaintenanceActionDetails/PendingMaintenanceAction/OptInStatus=next-maintenance",
		"ResourcePendingMaintenanceActions/PendingMaintenanceActionDetails/PendingMaintenanceAction/CurrentApplyDate=2026-11-23T05:00:00.000Z")
	u.do(rotateNot + arn)
	w.at(monday)
	w.keep()
	if got := u.instanceRecord("db"); got.CACertificate != "howdah-ca" || len(got.OptIns) != 0 {
		t.Errorf("rotated although it was taken back: %+v", got)
	}
	w.at(sunday)
	u.do(rotateAt + arn)
	w.keep()
	if got := u.instanceRecord("db"); got.CACertificate != "howdah-ca" {
		t.Error("rotated outside of the window")
	}
	w.at(monday)
	w.keep()
	u.rotated("howdah-ca-g2")
}

// rotated: the rotation began, without a restart, and ends.
func (u *user) rotated(to string) {
	u.Helper()
	if got := u.instanceRecord("db"); got.Restart != 0 || got.CACertificate != to || got.OptedIn(spec.RotateCertificate) {
		u.Errorf("not rotated: %+v", got)
	}
	u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=modifying", shownCA+"howdah-ca", waitingCA+to)
	u.settle()
	u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=available", shownCA+to, "!DBInstances/DBInstance/PendingModifiedValues/CACertificateIdentifier")
	u.do(showPending).has(noPending)
	u.do("DescribeEvents?EventCategories.EventCategory.1=maintenance").has(
		"Events/Event/Message=The server certificate is replaced by one of authority " + to + ", without a restart unless one was asked for.")
}

func TestCertificateIsRotatedAtOnce(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newDB)
	u.settle()
	w.next()
	w.keep()
	u.do(modifyDB + "&CACertificateIdentifier=howdah-ca-g2&BackupRetentionPeriod=3")
	u.do(rotateNow + u.fill(instanceARN)).has("ResourcePendingMaintenanceActions/PendingMaintenanceActionDetails/PendingMaintenanceAction/OptInStatus=immediate")
	if got := u.instanceRecord("db"); got.Pending == nil || got.Pending.CACertificate != "" || wire.Or(got.Pending.BackupRetention, 0) != 3 {
		t.Errorf("what waits besides: %+v", got.Pending)
	}
	u.try(rotateNow+u.fill(instanceARN)).is("ResourceNotFoundFault", "no pending maintenance action")
}

// In the last year of an authority nobody is asked.
func TestCertificateIsRotatedBeforeItsAuthorityEnds(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	ca, err := w.server.Home.CA()
	if err != nil {
		t.Fatal(err)
	}
	late := spec.NextMaintenance("mon:05:00-mon:06:00", ca.Cert.NotAfter.Add(-upkeep.RotateBefore))
	w.at(late.Add(-4 * 24 * time.Hour))
	u.do(with(newDB, "PreferredMaintenanceWindow=mon:05:00-mon:06:00", "PreferredBackupWindow=01:00-02:00"))
	u.settle()
	if err := w.server.rds.Upkeep.KeepAuthorities(t.Context()); err != nil { // makes the next by itself
		t.Fatal(err)
	}
	if got := w.server.rds.Authorities.Names(); !slices.Contains(got, "howdah-ca-g2") || len(got) != 5 {
		t.Fatalf("authorities %q", got)
	}
	u.do(showPending).has(pendingCA+"Action=ca-certificate-rotation", pendingCA+"AutoAppliedAfterDate="+late.Format("2006-01-02T15:04:05.000Z"))
	w.keep()
	w.at(late.Add(time.Minute))
	w.keep()
	u.rotated("howdah-ca-g2")
	if err := w.server.rds.Upkeep.KeepAuthorities(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.server.rds.Authorities.Names(); len(got) != 5 {
		t.Errorf("made again: %q", got)
	}
	if n := w.certificates(); n != 5 {
		t.Errorf("%d certificates in the bundle", n)
	}
}

func TestAuthoritiesOfClusters(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newCluster)
	u.do("CreateDBInstance?DBInstanceIdentifier=one&DBClusterIdentifier=aura&Engine=aurora-postgresql&DBInstanceClass=db.t3.micro")
	u.do("CreateDBInstance?DBInstanceIdentifier=two&DBClusterIdentifier=aura&Engine=aurora-postgresql&DBInstanceClass=db.t3.micro")
	u.settle()
	w.next()
	w.keep()
	one := u.fill("arn:aws:rds:us-east-1:{account}:db:one")
	u.do(showPending).has("PendingMaintenanceActions/ResourcePendingMaintenanceActions#2")
	u.do(rotateNow + one)
	u.do("DescribeDBInstances?DBInstanceIdentifier=one").has(shownCA+"howdah-ca", waitingCA+"howdah-ca-g2", "DBInstances/DBInstance/DBInstanceStatus=available")
	u.settle()
	u.do("DescribeDBInstances?DBInstanceIdentifier=one").has(shownCA + "howdah-ca-g2")
	u.do("DescribeDBInstances?DBInstanceIdentifier=two").has(shownCA + "howdah-ca")
	u.do(showPending).has("PendingMaintenanceActions/ResourcePendingMaintenanceActions#1")
	u.do("ModifyDBInstance?DBInstanceIdentifier=two&ApplyImmediately=true&CACertificateIdentifier=howdah-ca-g2&CertificateRotationRestart=true")
	u.do("DescribeDBInstances?DBInstanceIdentifier=two").has("DBInstances/DBInstance/DBInstanceStatus=modifying")
	u.settle()
	u.do("DescribeDBInstances?DBInstanceIdentifier=two").has("DBInstances/DBInstance/DBInstanceStatus=available", shownCA+"howdah-ca-g2")
	u.try("ModifyDBCluster?DBClusterIdentifier=aura&CACertificateIdentifier=howdah-ca").is("InvalidParameterCombination", "CACertificateIdentifier")
}

func TestAuthorityOfAMultiAZCluster(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newTrio)
	u.settle()
	w.next()
	w.keep()
	trio := u.fill("arn:aws:rds:us-east-1:{account}:cluster:trio")
	u.do(showPending).has("PendingMaintenanceActions/ResourcePendingMaintenanceActions#1", onePending+"ResourceIdentifier="+trio)
	u.try("ModifyDBInstance?DBInstanceIdentifier=trio-instance-1&CACertificateIdentifier=howdah-ca-g2").is("InvalidParameterCombination", "modify the cluster")
	u.do("ModifyDBCluster?DBClusterIdentifier=trio&CACertificateIdentifier=howdah-ca-g2").has("DBCluster/CertificateDetails/CAIdentifier=howdah-ca", "DBCluster/PendingModifiedValues/CertificateDetails/CAIdentifier=howdah-ca-g2")
	u.do(rotateNow + trio)
	u.do("DescribeDBClusters?DBClusterIdentifier=trio").has("DBClusters/DBCluster/Status=modifying", "DBClusters/DBCluster/CertificateDetails/CAIdentifier=howdah-ca", "DBClusters/DBCluster/PendingModifiedValues/CertificateDetails/CAIdentifier=howdah-ca-g2")
	u.settle()
	u.do("DescribeDBClusters?DBClusterIdentifier=trio").has("DBClusters/DBCluster/Status=available", "DBClusters/DBCluster/CertificateDetails/CAIdentifier=howdah-ca-g2", "!DBClusters/DBCluster/PendingModifiedValues")
	u.do("DescribeDBInstances?DBInstanceIdentifier=trio-instance-2").has(shownCA + "howdah-ca-g2")
	u.do("DescribeEvents?EventCategories.EventCategory.1=maintenance").has("Events/Event#6")
	u.do(showPending).has(noPending)
}

func TestDefaultAuthority(t *testing.T) {
	w := newWorld(t)
	u, other := w.user(t), w.user(t)
	w.authority("rds-ca-rsa2048-g1")
	u.do("ModifyCertificates?CertificateIdentifier=rds-ca-rsa2048-g1").has("Certificate/CertificateIdentifier=rds-ca-rsa2048-g1", "Certificate/CustomerOverride=true", "Certificate/CustomerOverrideValidTill#1")
	u.do("DescribeCertificates").has("Certificates/Certificate#2", "DefaultCertificateForNewLaunches=rds-ca-rsa2048-g1",
		"Certificates/Certificate[1]/CustomerOverride=false", "Certificates/Certificate[2]/CustomerOverride=true")
	other.do("DescribeCertificates").has("DefaultCertificateForNewLaunches=howdah-ca")
	u.do(newDB).has("DBInstance/CACertificateIdentifier=rds-ca-rsa2048-g1")
	other.do(newDB).has("DBInstance/CACertificateIdentifier=howdah-ca")
	w.next()
	other.do("DescribeCertificates").has("DefaultCertificateForNewLaunches=howdah-ca-g2")
	u.do("ModifyCertificates?RemoveCustomerOverride=true").has("Certificate/CertificateIdentifier=howdah-ca-g2", "Certificate/CustomerOverride=false")
	u.do("ModifyCertificates?RemoveCustomerOverride=true").has("Certificate/CustomerOverride=false")
	u.do(showVersions + "Engine=postgres").has("DBEngineVersions/DBEngineVersion/SupportedCACertificateIdentifiers/member#3")
}

func TestAuthorityVerbs(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newDB)
	op := u.operator()
	for _, want := range []string{"howdah-ca-g2", "howdah-ca-g3"} {
		made, err := ask[admin.Authority](t, w, op, admin.VerbAuthorityCreate, admin.AuthorityRequest{Line: "howdah-ca"})
		if err != nil || made.Name != want || made.Databases != 0 || made.Newer != "" {
			t.Errorf("%+v, %v, want %s", made, err, want)
		}
	}
	if made, err := ask[admin.Authority](t, w, op, admin.VerbAuthorityCreate, admin.AuthorityRequest{Line: "rds-ca-ecc384"}); err != nil || made.Name != "rds-ca-ecc384-g1" {
		t.Errorf("%+v, %v", made, err)
	}
	if _, err := ask[admin.Authority](t, w, op, admin.VerbAuthorityCreate, admin.AuthorityRequest{Line: "rds-ca-2019"}); err == nil || !strings.Contains(err.Error(), "no line") {
		t.Errorf("of a line that is none: %v", err)
	}
	list, err := ask[admin.AuthorityListAnswer](t, w, op, admin.VerbAuthorityList, admin.Nothing{})
	if err != nil || len(list.Authorities) != 4 {
		t.Fatal(list, err)
	}
	if first := list.Authorities[0]; first.Name != "howdah-ca" || first.Newer != "howdah-ca-g3" || first.Databases != 1 || len(first.Thumbprint) != 64 {
		t.Errorf("%+v", first)
	}
	if n := w.certificates(); n != 4 {
		t.Errorf("%d certificates in the bundle", n)
	}
}

// An authority that asks for a key gets it only as it was sealed.
func TestAuthorityIsSealed(t *testing.T) {
	w := newWorld(t)
	w.next()
	r, err := state.Load[authority.Record](w.server.Cache, state.Authority("howdah-ca-g2"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(r.Value.Sealed, []byte("PRIVATE")) {
		t.Error("the key is in the state as it is")
	}
	seal, err := w.server.Home.SealKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Value.Open(seal); err != nil {
		t.Error(err)
	}
	forged := r.Value
	forged.ID = "howdah-ca-g3"
	if _, err := forged.Open(seal); err == nil {
		t.Error("it opens for another name")
	}
	if _, err := r.Value.Open(bytes.Repeat([]byte{1}, 32)); err == nil {
		t.Error("it opens with another key")
	}
}

package server

import (
	"strings"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/identity/kms"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// encrypts has the hosts of zones encrypt storage.
func (w *world) encrypts(zones ...string) {
	w.Helper()
	for _, zone := range zones {
		r, err := state.Load[member.Host](w.server.Cache, state.Host("host-"+zone))
		if err != nil {
			w.Fatal(err)
		}
		r.Value.Encrypts = member.ByKey
		w.put(state.Put(r.Key, r.Value))
	}
}

const (
	encrypted = "StorageEncrypted=true"
	shownDB   = "DBInstances/DBInstance/"
)

// customerKey makes a KMS key in a region.
func (u *user) customerKey(region string, change func(*kms.Key)) kms.Key {
	u.Helper()
	seal, err := u.server.Home.SealKey()
	if err != nil {
		u.Fatal(err)
	}
	k, err := kms.New(seal, spec.Scope{Account: u.account, Region: region}, time.Now())
	if err != nil {
		u.Fatal(err)
	}
	if change != nil {
		change(&k)
	}
	u.put(state.Put(k.Path(), k))
	return k
}

func TestEncryptedStorage(t *testing.T) {
	u := newWorld(t).user(t)
	asked := with(newDB, encrypted)
	u.try(asked).is("InvalidParameterCombination", "no host can encrypt storage (host-a cannot: its agent is of an older version")
	u.do("DescribeOrderableDBInstanceOptions?Engine=postgres").has("OrderableDBInstanceOptions/OrderableDBInstanceOption[1]/SupportsStorageEncryption=false")
	u.encrypts("a")
	u.do("DescribeOrderableDBInstanceOptions?Engine=postgres").has("OrderableDBInstanceOptions/OrderableDBInstanceOption[1]/SupportsStorageEncryption=true")
	u.try(with(asked, "MultiAZ=true")).is("InsufficientDBInstanceCapacity", "host-b cannot encrypt storage")
	u.try(with(asked, "AvailabilityZone=us-east-1b")).is("InsufficientDBInstanceCapacity", "host-b cannot encrypt storage")
	u.do(asked).has("DBInstance/StorageEncrypted=true")
	u.settle()

	i := u.instanceRecord("db")
	u.do(showDB).has(shownDB+"StorageEncrypted=true", shownDB+"KmsKeyId=arn:aws:kms:us-east-1:"+u.account+":key/"+i.StorageKey)
	storage, err := state.Load[kms.Storage](u.server.Cache, state.StorageKey(i.ResourceID))
	if err != nil {
		t.Fatal(err)
	}
	key, err := state.Load[kms.Key](u.server.Cache, state.KMSKey(u.account, u.region, i.StorageKey))
	if err != nil || !key.Value.Service || key.Value.Uses != 1 {
		t.Fatalf("%+v, %v", key.Value, err)
	}
	seal, _ := u.server.Home.SealKey()
	if _, err := storage.Value.ForMember(seal, key.Value, i.ResourceID+".m1"); err != nil {
		t.Error(err)
	}
	if !u.database("db").Encrypted {
		t.Error("the planner does not know of it")
	}

	// The label follows what the hosts see, and status tells where it is not so.
	u.see("db", func(s *scene) { s.each(func(r *member.Report) { r.Encryption = member.NotEncrypted }) })
	u.do(showDB).has(shownDB+"StorageEncrypted=false", "!"+shownDB+"KmsKeyId")
	u.see("db", func(s *scene) { s.each(func(r *member.Report) { r.Encryption = member.ByDisk }) })
	u.do(showDB).has(shownDB + "StorageEncrypted=true")
	for problem, text := range map[member.Problem]string{member.NotEncryptable: "is to be encrypted, and is not", member.NoKey: "does not get the key (no answer)"} {
		u.see("db", func(s *scene) { s.each(func(r *member.Report) { r.Problem, r.Detail = problem, "no answer" }) })
		found := false
		for _, p := range u.problems("db") {
			found = found || p.Code == string(problem) && strings.Contains(p.Text, text)
		}
		if !found {
			t.Errorf("no problem %s", problem)
		}
	}
	u.settle()

	// The second database has the same KMS key.
	u.do(with(asked, "DBInstanceIdentifier=second", "KmsKeyId=alias/aws/rds"))
	u.do(with(asked, "DBInstanceIdentifier=third"))
	for _, name := range []string{"second", "third"} {
		if got := u.instanceRecord(name).StorageKey; got != i.StorageKey {
			t.Errorf("%s has the key %s", name, got)
		}
	}
	u.do(with(newDB, "DBInstanceIdentifier=plain", "StorageEncrypted=false")).has("DBInstance/StorageEncrypted=false", "!DBInstance/KmsKeyId")
	if _, _, there := u.server.Cache.Raw(state.StorageKey(u.instanceRecord("plain").ResourceID)); there {
		t.Error("a database without encryption has a key")
	}
}

func TestKmsKeyId(t *testing.T) {
	u := newWorld(t).user(t)
	u.encrypts("a", "b", "c")
	mine := u.customerKey(u.region, nil)
	disabled := u.customerKey(u.region, func(k *kms.Key) { k.Disabled = true })
	leaving := u.customerKey(u.region, func(k *kms.Key) { k.DeleteAt = time.Now().Add(time.Hour) })
	far := u.customerKey("eu-west-1", nil)
	strangers := u.world.user(t).customerKey(u.region, nil)
	u.do(with(newDB, encrypted, "KmsKeyId="+mine.ARN())).has("DBInstance/KmsKeyId=" + mine.ARN())
	u.do(with(newDB, "DBInstanceIdentifier=other", encrypted, "KmsKeyId="+mine.ID)).has("DBInstance/KmsKeyId=" + mine.ARN())
	for _, call := range []string{with(newDB, "DBInstanceIdentifier=no"), with(newCluster, "DBClusterIdentifier=no")} {
		for _, name := range []string{
			"alias/mine", "mine", disabled.ARN(), leaving.ID, far.ARN(), strangers.ARN(), strangers.ID,
			"arn:aws:kms:us-east-1:" + u.account + ":key/00000000-0000-4000-8000-000000000000",
		} {
			u.try(with(call, encrypted, "KmsKeyId="+name)).is("KMSKeyNotAccessibleFault", "The specified KMS key ["+name+"] does not exist")
			u.try(with(call, "KmsKeyId="+name)).is("KMSKeyNotAccessibleFault", name)
		}
		u.try(with(call, "KmsKeyId="+mine.ID)).is("InvalidParameterCombination", "StorageEncrypted=true")
		u.try(with(call, "StorageEncrypted=false", "KmsKeyId="+mine.ID)).is("InvalidParameterCombination", "StorageEncrypted=true")
	}
	if k, err := state.Load[kms.Key](u.server.Cache, mine.Path()); err != nil || k.Value.Uses != 2 {
		t.Errorf("uses of the key: %+v, %v", k.Value.Uses, err)
	}
}

// A replica is encrypted if its source is, and a cluster with all its instances.
func TestWhatInheritsEncryption(t *testing.T) {
	u := newWorld(t).user(t)
	u.encrypts("a", "b", "c")
	mine, other, far := u.customerKey(u.region, nil), u.customerKey(u.region, nil), u.customerKey("eu-west-1", nil)
	having(newDB, with(newDB, "DBInstanceIdentifier=sealed", encrypted, "KmsKeyId="+mine.ID))(u)
	u.do(newReplica).has("DBInstance/StorageEncrypted=false", "!DBInstance/KmsKeyId")
	u.try(with(newReplica, "DBInstanceIdentifier=copy2", "KmsKeyId="+mine.ID)).is("InvalidParameterCombination", "an encrypted Read Replica from an unencrypted")
	of := with(newReplica, "DBInstanceIdentifier=copy2", "SourceDBInstanceIdentifier=sealed")
	u.try(with(of, "KmsKeyId="+other.ID)).is("InvalidParameterCombination", "KMS key of its source")
	u.try(with(of, "KmsKeyId=alias/none")).is("KMSKeyNotAccessibleFault", "alias/none")
	u.do(of).has("DBInstance/StorageEncrypted=true", "DBInstance/KmsKeyId="+mine.ARN())
	source, copied := u.instanceRecord("sealed"), u.instanceRecord("copy2")
	one, errOne := state.Load[kms.Storage](u.server.Cache, state.StorageKey(source.ResourceID))
	two, errTwo := state.Load[kms.Storage](u.server.Cache, state.StorageKey(copied.ResourceID))
	if errOne != nil || errTwo != nil || string(one.Value.Wrapped) == string(two.Value.Wrapped) {
		t.Errorf("the replica has no key of its own: %v, %v", errOne, errTwo)
	}

	away := *u
	away.region = "eu-west-1"
	there := with(newReplica, "DBInstanceIdentifier=copy3", "SourceDBInstanceIdentifier=arn:aws:rds:us-east-1:{account}:db:sealed")
	away.try(there).is("InvalidParameterCombination", "needs KmsKeyId, a key of the region eu-west-1")
	away.try(with(there, "KmsKeyId="+mine.ARN())).is("KMSKeyNotAccessibleFault", mine.ARN())
	away.do(with(there, "KmsKeyId="+far.ID)).has("DBInstance/KmsKeyId=" + far.ARN())

	u.do(with(newCluster, encrypted)).has("DBCluster/StorageEncrypted=true", "DBCluster/KmsKeyId#1")
	u.settle()
	u.try(with(newMember, "KmsKeyId="+mine.ID)).is("InvalidParameterCombination", "storage encryption")
	u.try(with(newMember, "StorageEncrypted=false")).is("InvalidParameterCombination", "storage encryption")
	u.do(with(newMember, encrypted)).has("DBInstance/StorageEncrypted=true", "DBInstance/KmsKeyId#1")
	if _, _, there := u.server.Cache.Raw(state.StorageKey(u.instanceRecord("aura-1").ResourceID)); there {
		t.Error("an instance of a cluster has a key beside the cluster's")
	}
	u.do(with(newTrio, encrypted)).has("DBCluster/StorageEncrypted=true")
	u.settle()
	u.do("DescribeDBInstances?DBInstanceIdentifier=trio-instance-1").has(shownDB + "StorageEncrypted=true")
	if got := plan.ForCluster(u.clusterRecord("trio"), nil, plan.Links{}); !got.Encrypted {
		t.Error("the planner does not know of it")
	}
}

// TestEncryptedStorageNeedsEncryptedBackups: nothing of it is written in the clear.
func TestEncryptedStorageNeedsEncryptedBackups(t *testing.T) {
	u := newWorld(t).user(t)
	u.encrypts("a", "b", "c")
	plain := backup.Repository{Name: "plain", Kind: backup.Directory, Path: "/plain", Default: true}
	u.put(state.Put(state.Repository("plain"), plain))
	asked := with(newDB, encrypted)
	u.try(asked).is("InvalidParameterCombination", "the repository plain, where its backups would go, encrypts nothing")
	u.do(with(newDB, "DBInstanceIdentifier=open"))
	plain.Default = false
	u.put(state.Put(state.Repository("plain"), plain), state.Put(state.Repository("main"), backup.Repository{Name: "main", Kind: backup.Directory, Path: "/main", Key: []byte("sealed"), Default: true}))
	u.do(asked).has("DBInstance/StorageEncrypted=true")
}

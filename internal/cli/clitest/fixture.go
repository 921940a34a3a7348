package clitest

import (
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/failover/postmortem"
	"howdah/internal/model/lsn"
)

// Noon is the time in all fixtures, and that of the command's clock.
var Noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// Keys are the access keys of the fake.
var Keys = []admin.Key{
	{AccessKey: "TESTKEY", Account: "123456789012", Name: "root", OfHome: true},
	{AccessKey: "HOWDAH0123456789ABCD", Account: "123456789012", Name: "ci", Policy: `{"Version":"2012-10-17"}`, Created: ptr(Noon), CreatedBy: "TESTKEY"},
	{AccessKey: "HOWDAH00000000000001", Account: "000000000001", Name: "looker", ReadOnly: true, Created: ptr(Noon), CreatedBy: "TESTKEY"},
}

// Fixtures by the name that golden files call them by.
var Fixtures = map[string]func(*Fake){
	"empty": func(f *Fake) { f.status, f.empty = home3(), true },
	"two":   Two,
	"named": named,
	"no operation": func(f *Fake) {
		f.status = home3()
		f.refuse[admin.VerbOperations] = admin.NewError(admin.CodeOperationNotFound, `There is no operation "copy-99".`, "see `howdah operations`")
	},
	"trouble": func(f *Fake) {
		Two(f)
		trouble(f)
	},
	"creating": func(f *Fake) {
		f.status = home3()
		f.later["new"] = []string{"creating", "creating", "available"}
	},
	"stopping":         func(f *Fake) { Two(f); f.later["orders"] = []string{"available", "stopping", "stopped"} },
	"starting":         func(f *Fake) { Two(f); f.later["orders"] = []string{"stopped", "starting", "available"} },
	"deleting":         func(f *Fake) { Two(f); f.later["orders"] = []string{"available", "deleting", ""} },
	"deleting cluster": func(f *Fake) { Two(f); f.later["shop"] = []string{"available", "deleting", ""} },
	"rebooting":        func(f *Fake) { Two(f); f.later["orders"] = []string{"available", "rebooting", "available"} },
	"failing over": func(f *Fake) {
		Two(f)
		f.later["orders"] = []string{"available", "rebooting", "available"}
		f.failovers = []postmortem.Record{failover("orders", Noon.Add(time.Minute))}
	},
	"a failover given up": func(f *Fake) {
		Two(f)
		f.later["orders"] = []string{"available", "rebooting", "available"}
		f.status.Databases[0].Abandoned = "checkpoint before handing over: the disk does not answer"
	},
	"pending": func(f *Fake) {
		Two(f)
		f.instances[0].PendingModifiedValues = &rds.PendingModifiedValues{DBInstanceClass: ptr("db.m7g.large")}
	},
	"draining": func(f *Fake) {
		Two(f)
		m := admin.Move{Database: "orders", ResourceID: "db-1", Member: "m1", Role: "primary", To: "zone-c"}
		going := m
		going.Step = "building m3 on zone-c in place of m1"
		f.moves = [][]admin.Move{{m}, {going}, {going}, {}}
	},
	"stuck": func(f *Fake) {
		Two(f)
		m := admin.Move{Database: "orders", ResourceID: "db-1", Member: "m1", Role: "primary", Problem: "no host for a member: zone-c is being drained"}
		f.moves = [][]admin.Move{{m}}
	},
	"refusing": func(f *Fake) {
		Two(f)
		busy := &admin.Error{Code: "InvalidDBInstanceState", Message: "The DB instance orders is not available.", Status: 400}
		f.refuse["RebootDBInstance"], f.refuse["StopDBInstance"] = busy, busy
		f.refuse["CreateDBInstance"] = admin.NewError("DBInstanceAlreadyExists", "DB instance already exists", "")
		f.refuse[admin.VerbKeyCreate] = admin.NewError(admin.CodeInvalidRequest, "The access key cannot be made: invalid access key: an account is twelve digits, not \"12\".", "")
		f.refuse[admin.VerbKeyDelete] = admin.NewError(admin.CodeKeyOfHome, "The access key TESTKEY is the home's own.", "delete it there")
		f.refuse[admin.VerbRoleRemove] = admin.NewError(admin.CodeRoleInUse, "The role exports is that of billing for s3Import, and of 2 databases in all.", "take it from them first")
		f.refuse[admin.VerbOperationCancel] = admin.NewError(admin.CodeOperationEnded, "The operation copy-13 has ended: it is cancelled.", "")
		f.refuse[admin.VerbForgetHost] = admin.NewError(admin.CodeHostAlive, "The host zone-a is alive.", "empty it first")
		f.refuse[admin.VerbWipe] = admin.NewError(admin.CodeNotDisposable, "This home is not disposable: nothing was deleted.", "use another one")
	},
	"no backups": func(f *Fake) {
		Two(f)
		f.status.Databases[0].Backups = &admin.DatabaseBackups{Retention: 7, Count: 1, Failed: "it cannot be restored"}
		f.refuse[admin.VerbBackupDrill] = admin.NewError(admin.CodeBackupRefused, "There is no backup of orders in the repository default that could be tried.", "make one: howdah backup now orders")
		f.refuse[admin.VerbBackups] = admin.NewError(admin.CodeDatabaseNotFound, `There is no database "nobody".`, "see `howdah db list`")
	},
	"not restorable": func(f *Fake) {
		f.status = home3()
		f.later["new"] = []string{"creating", "incompatible-restore"}
	},
	"too late": func(f *Fake) {
		f.status = home3()
		f.refuse[admin.VerbRestore] = &admin.Error{Code: "InvalidParameterValue", Message: "The specified instance cannot be restored to a time later than 2026-11-21T11:59:30Z: orders can be restored to a time from 2026-11-20T03:10:00Z to 2026-11-21T11:59:30Z.", Hint: "howdah backup show orders says what can be restored", Status: 400}
	},
	"with replicas": func(f *Fake) {
		Two(f)
		f.refuse[admin.VerbRewind] = &admin.Error{Code: "InvalidDBInstanceState", Message: "orders has read replicas (copy), which would go on with the data of now: promote them (howdah db promote NAME) or delete them first, and make new ones after it has gone back.", Status: 400}
	},
	"stopped": func(f *Fake) { Two(f); f.later["orders"] = []string{"stopped"} },
	"unlimited": func(f *Fake) {
		f.status = home3()
		f.status.Hosts[0].Limits = "containment: cgroup2 in /x\ncpu limits: v2\nmemory limits: v2\nio limits: none (no device)\nnote: reads and writes each\n"
		f.status.Hosts[0].StorageLimit, f.status.Hosts[0].WhyWatched = admin.StorageHeld, ""
		f.status.Hosts[1].Limits = "containment: tree\ncpu limits: none (no)\nmemory limits: none (no)\nio limits: none (no)\n"
		f.status.Hosts[2].Limits = f.status.Hosts[1].Limits
		f.status.Hosts[1].Shared = "the agent is not root, and all run as user dba"
		f.status.Hosts[2].Shared = f.status.Hosts[1].Shared
	},
	"silent": func(f *Fake) {
		Two(f)
		f.status.Hosts[0].State = admin.HostLost
		for i := range f.status.Databases {
			d := &f.status.Databases[i]
			d.Members[0].State, d.Members[0].Ready, d.HostKeys = "host lost", false, true
			for n := range d.Endpoints {
				d.Endpoints[n].LeadsTo = nil
			}
		}
	},
	"reachable": func(f *Fake) { f.status = home3(); f.status.Control[0].URL = "https://10.0.0.1:7443" },
	"alone":     func(f *Fake) { f.status = home3(); f.status.Hosts, f.status.Edges = nil, nil },
	"demo": func(f *Fake) {
		f.status = home3()
		f.later["demo"] = []string{"creating", "available"}
	},
	"two demos": func(f *Fake) {
		f.status = home3()
		f.instances = []rds.DBInstance{instance("demo", "available")}
		f.status.Databases = []admin.Database{databaseOf("demo", "db-NEW")}
	},
	"demo stopped": func(f *Fake) { f.status = home3(); f.instances = []rds.DBInstance{instance("demo", "stopped")} },
	"failovers of all kinds": func(f *Fake) {
		Two(f)
		planned := failover("shop", Noon)
		planned.Planned, planned.Cause = true, "planned"
		unknown := failover("shop", Noon.Add(-time.Hour))
		unknown.Discarded, unknown.Detected, unknown.Fenced, unknown.Proof, unknown.OldEnd = -1, time.Time{}, time.Time{}, "", 0
		nothing := failover("shop", Noon.Add(-2*time.Hour))
		nothing.Discarded, nothing.Timeline, nothing.Evidence = 0, 0, nil
		nothing.Detected, nothing.Elected = time.Time{}, time.Time{}
		f.failovers = []postmortem.Record{planned, unknown, nothing}
	},
	"etcd full": func(f *Fake) {
		f.status = home3()
		m := &f.status.Etcd[0]
		m.Full, m.Scarce, m.Bytes, m.Size, m.Quota = true, true, 7<<30, 8<<30, 8<<30
		f.status.Problems = []admin.Problem{{
			Code: "etcd-full", Subject: "etcd", Command: "howdah etcd mend",
			Text: "etcd is full and takes no writes: no failover is possible, and no change (s1 has 8192 MiB of 8192 MiB)",
		}}
	},
	"same name": func(f *Fake) { Two(f); f.clusters[0].DBClusterIdentifier = ptr("orders") },
}

// home3 is a home with three hosts and nothing in them.
func home3() admin.Status {
	s := admin.Status{
		Home: "1a2b3c4d", Version: "1.0", Account: "123456789012", Region: "us-west-2", Time: Noon,
		Control:   []admin.Control{{Name: "s1", URL: "https://127.31.0.1:7443", Running: true, Leading: true}},
		Etcd:      []admin.EtcdMember{{Name: "s1", ID: "43aac72ede6b8129", URL: "https://127.31.0.1:2379", Healthy: true, Leader: true, Bytes: 57344}},
		Databases: []admin.Database{}, Fences: []admin.Fence{}, Problems: []admin.Problem{},
		Edges: []admin.Edge{{Name: "edge", Running: true, Driver: "nft", ClientAddressVisible: true, Cost: "in the kernel", Started: Noon}},
	}
	for n, zone := range cli.Zones {
		s.Hosts = append(s.Hosts, admin.Host{
			Name: "zone-" + zone, Zone: zone, Address: "127.31.1." + string(rune('1'+n)), State: admin.HostAlive, Since: Noon.Add(-time.Hour),
			CPUs: 4, Memory: 16 << 30, Disk: 200 << 30, DiskFree: 150 << 30, Postgres: []string{"15.18"}, Containment: "cgroup2",
			Members: []string{}, Version: "1.0", StorageLimit: admin.StorageWatched,
			WhyWatched: "the file system holds no limit: it is not Btrfs",
		})
	}
	return s
}

func instance(name, status string) rds.DBInstance {
	return rds.DBInstance{
		DBInstanceIdentifier: ptr(name), DBInstanceStatus: ptr(status), Engine: ptr("postgres"), EngineVersion: ptr("15.18"),
		DBInstanceClass: ptr("db.t3.micro"), AllocatedStorage: ptr(int32(20)), MultiAZ: ptr(true), MasterUsername: ptr("postgres"),
		DBInstanceArn: ptr("arn:aws:rds:us-west-2:123456789012:db:" + name), DbiResourceId: ptr("db-NEW"), InstanceCreateTime: ptr(Noon.Add(-time.Hour)),
		Endpoint: &rds.Endpoint{Address: ptr("127.31.8.1"), Port: ptr(int32(5432))}, PreferredMaintenanceWindow: ptr("sun:03:00-sun:03:30"),
	}
}

func databaseOf(name, id string) admin.Database {
	lag, seconds := int64(1536), 0.25
	return admin.Database{
		Kind: admin.KindInstance, Name: name, Account: "123456789012", Region: "us-west-2", ResourceID: id, Status: "available",
		Engine: "postgres", Version: "15.18", Class: "db.t3.micro", MultiAZ: true, StorageGiB: 20, MasterUser: "postgres",
		Created: Noon.Add(-time.Hour), SyncMode: "on",
		Endpoints: []admin.Endpoint{{Kind: admin.EndpointWriter, Name: name, Address: "127.31.8.1:5432", LeadsTo: []string{"m1"}}},
		Members: []admin.Member{
			{Name: "m1", Host: "zone-a", Zone: "a", Address: "127.31.1.1:15432", Role: admin.RolePrimary, State: "ready", Ready: true, Timeline: 3, LSN: lsn.LSN(0x3000660)},
			{Name: "m2", Host: "zone-b", Zone: "b", Address: "127.31.1.2:15432", Role: admin.RoleStandby, Sync: admin.SyncSync, State: "ready", Ready: true, Timeline: 3, LSN: lsn.LSN(0x3000060), LagBytes: &lag, LagSeconds: &seconds},
		},
		Steps: []admin.Step{},
	}
}

// Two has a Multi-AZ instance and a cluster with a writer and a reader.
func Two(f *Fake) {
	f.status = home3()
	orders := instance("orders", "available")
	orders.DbiResourceId, orders.DBName = ptr("db-1"), ptr("shop")
	writer, reader := instance("shop-1", "available"), instance("shop-2", "available")
	for _, i := range []*rds.DBInstance{&writer, &reader} {
		i.DBClusterIdentifier, i.MultiAZ, i.Engine = ptr("shop"), ptr(false), ptr("aurora-postgresql")
	}
	orders.MasterUserSecret = &rds.MasterUserSecret{SecretArn: ptr("arn:aws:secretsmanager:us-west-2:123456789012:secret:rds!db-1-AbCdEf"), SecretStatus: ptr("active")}
	f.instances = []rds.DBInstance{orders, writer, reader}
	f.clusters = []rds.DBCluster{{
		DBClusterIdentifier: ptr("shop"), Status: ptr("available"), Engine: ptr("aurora-postgresql"), EngineVersion: ptr("15.18"),
		DbClusterResourceId: ptr("cluster-1"), DBClusterArn: ptr("arn:aws:rds:us-west-2:123456789012:cluster:shop"), MasterUsername: ptr("app"),
		Endpoint: ptr("127.31.8.2"), ReaderEndpoint: ptr("127.31.8.3"), Port: ptr(int32(5432)), ClusterCreateTime: ptr(Noon),
		DBClusterMembers: []rds.DBClusterMember{
			{DBInstanceIdentifier: ptr("shop-1"), IsClusterWriter: ptr(true)}, {DBInstanceIdentifier: ptr("shop-2"), IsClusterWriter: ptr(false)},
		},
	}}
	f.Logs.Owner = "m1"
	f.Logs.Files = map[string][]Log{
		"orders": {{"error/postgresql.log.2026-11-21-11", "earlier\n"}, {"error/postgresql.log.2026-11-21-12", "one\ntwo\nthree\n"}},
		"shop-1": {{"error/postgresql.log.2026-11-21-12", "of the writer\n"}},
	}
	shop := databaseOf("shop", "cluster-1")
	shop.Kind, shop.Engine, shop.Class, shop.MultiAZ = admin.KindCluster, "aurora-postgresql", "", false
	shop.Members[0].Instance, shop.Members[1].Instance = "shop-1", "shop-2"
	shop.Endpoints = []admin.Endpoint{
		{Kind: admin.EndpointWriter, Name: "shop", Address: "127.31.8.2:5432", LeadsTo: []string{"m1"}},
		{Kind: admin.EndpointReader, Name: "shop", Address: "127.31.8.3:5432", LeadsTo: []string{"m2"}},
		{Kind: admin.EndpointInstance, Name: "shop-2", Address: "127.31.8.4:5432", LeadsTo: []string{"m2"}},
	}
	f.status.Databases = []admin.Database{databaseOf("orders", "db-1"), shop}
	f.status.Databases[0].Backups = &admin.DatabaseBackups{
		Retention: 7, Count: 2, Earliest: Noon.Add(-33 * time.Hour), Restorable: Noon.Add(-10 * time.Second), Proved: Noon.Add(-24 * time.Hour),
	}
	f.status.Hosts[0].Members = []string{"orders/m1", "shop/m1"}
	f.status.Hosts[0].Committed = 2 << 30
	f.failovers = []postmortem.Record{failover("orders", Noon.Add(-time.Minute))}
	f.status.LastFailover = &f.failovers[0]
	f.events = []rds.Event{
		{SourceIdentifier: ptr("orders"), SourceType: ptr("db-instance"), Message: ptr("DB instance created"), Date: ptr(Noon.Add(-time.Hour)), EventCategories: []string{"creation"}, SourceArn: ptr("arn:1")},
		{SourceIdentifier: ptr("shop"), SourceType: ptr("db-cluster"), Message: ptr("Completed failover to DB instance: shop-1"), Date: ptr(Noon.Add(-time.Minute)), EventCategories: []string{"failover"}, SourceArn: ptr("arn:2")},
	}
	f.moves = [][]admin.Move{{}}
}

// named is Two in a home with a DNS zone.
func named(f *Fake) {
	Two(f)
	const orders, writer, reader = "orders.c1.us-west-2.howdah.internal", "shop.cluster-c1.us-west-2.howdah.internal", "shop.cluster-ro-c1.us-west-2.howdah.internal"
	f.status.Zone, f.status.Edges[0].Names = "howdah.internal", "127.31.0.53:53"
	f.instances[0].Endpoint.Address, f.clusters[0].Endpoint, f.clusters[0].ReaderEndpoint = ptr(orders), ptr(writer), ptr(reader)
	f.status.Databases[0].Endpoints[0].Host = orders
	for n, host := range []string{writer, reader, "shop-2.c1.us-west-2.howdah.internal"} {
		f.status.Databases[1].Endpoints[n].Host = host
	}
}

// trouble makes everything go wrong at once.
func trouble(f *Fake) {
	s := &f.status
	s.Hosts[1].State, s.Hosts[1].Members = admin.HostLost, []string{"orders/m2"}
	s.Hosts[2].Draining = true
	s.Control = append(s.Control, admin.Control{Name: "s2", URL: "https://10.0.0.2:7443"})
	s.Etcd = append(s.Etcd, admin.EtcdMember{Name: "s2", Error: "no answer within 1s"})
	d := &s.Databases[0]
	d.Status = "modifying"
	m := &d.Members[1]
	m.State, m.Ready, m.Sync, m.Going, m.LagBytes, m.LagSeconds = "host lost", false, admin.SyncAsync, "replaced", nil, nil
	d.Steps = []admin.Step{{Name: "building m3 on zone-c in place of m2", Began: Noon.Add(-90 * time.Second)}}
	d.Endpoints[0].LeadsTo = []string{}
	s.Fences = []admin.Fence{{Database: "orders", Phase: "cutting", Host: "zone-a", Member: "m1", Opened: Noon, Evidence: []string{"no heartbeat of zone-a for 2s"}}}
	s.Edges = append(s.Edges, admin.Edge{Name: "edge-b", Driver: "haproxy", Cost: "a hop"})
	s.Problems = []admin.Problem{
		{Code: "host-lost", Subject: "host zone-b", Text: "silent since 11:58:00Z, with orders/m2", Command: "howdah up --detach"},
		{Code: "no-standby-in-sync", Subject: "db orders", ResourceID: "db-1", Text: "no standby is in sync"},
		{Code: "no-version", Subject: "db orders", ResourceID: "db-1", Text: "PostgreSQL 15 is not installed", Command: "scripts/install"},
	}
}

func failover(name string, at time.Time) postmortem.Record {
	return postmortem.Record{
		ID: "18ea0aced5ccc38f", Database: "db-1", Name: name, Cause: "PostgreSQL of the primary died: killed by signal 9",
		From: "m2", FromHost: "zone-b", To: "m1", ToHost: "zone-a", Method: "killed", Proof: "the group is empty",
		Detected: at, Fenced: at.Add(31 * time.Millisecond), Revoked: at.Add(40 * time.Millisecond), Elected: at.Add(120 * time.Millisecond),
		Promoted: at.Add(300 * time.Millisecond), Switched: at.Add(301 * time.Millisecond), FirstWrite: at.Add(310 * time.Millisecond),
		Recorded: at.Add(400 * time.Millisecond), Evidence: []string{"it was there", "and then it was not"}, Sessions: 40,
		Timeline: 3, Fork: lsn.LSN(0x3000200), OldEnd: lsn.LSN(0x3000300), Discarded: 256,
	}
}

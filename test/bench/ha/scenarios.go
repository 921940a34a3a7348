package main

import "howdah/internal/testkit/rig"

// scenarios are all rows of the table, in its order.
var scenarios = []scenario{
	{name: "crash", run: failovers(multiAZ, postgresKilled)},
	{name: "cut", rig: namespaces, run: linkCut},
	{name: "frozen", run: failovers(multiAZ, frozen)},
	{name: "killed", run: failovers(multiAZ, allKilled)},
	{name: "user", rig: ordinaryUser, run: failovers(multiAZ, asUser(frozen))},
	{name: "alarms", run: falseAlarms},
	{name: "reboot", run: failovers(multiAZ, rebooted)},
	{name: "cluster", run: failovers(auroraCluster, clusterFailover)},
	{name: "etcd", run: etcdDead},
	{name: "create", run: createTimes},
	{name: "throughput", run: throughput("kernel")},
	{name: "proxy", rig: proxied, run: throughput("HAProxy")},
	{name: "sessions", run: sessionsCut},
	{name: "memory", run: memory},
}

// namespaces gives every host a network namespace of its own.
func namespaces(o *rig.Options) { o.Netns = true }

// ordinaryUser runs everything without privileges: no cgroups, no rules in the
// kernel, HAProxy for endpoints.
func ordinaryUser(o *rig.Options) { o.User = &rig.Account{UID: 65534, GID: 65534} }

// proxied has HAProxy for endpoints although the kernel could do it.
func proxied(o *rig.Options) { o.Edge = []string{"--driver", "haproxy"} }

func asUser(f fault) fault {
	f.name, f.target = f.name+", as an ordinary user", "8"
	return f
}

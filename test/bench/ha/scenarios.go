package main

import "howdah/internal/testkit/rig"

// scenarios has all rows of the table, in their order. Faults happen to both shapes: to a Multi-AZ
// instance, and, with a 3 at the end of the name, to a cluster of three members.
var scenarios = []scenario{
	{name: "crash", run: failovers(multiAZ, postgresKilled)},
	{name: "crashwarm", run: failovers(warm, postgresKilled)},
	{name: "crash3", run: failovers(cluster, postgresKilled)},
	{name: "patroni", run: failovers(multiAZ, patroniKilled)},
	{name: "patroni3", run: failovers(cluster, patroniKilled)},
	{name: "stopped", run: failovers(multiAZ, postgresStopped)},
	{name: "stopped3", run: failovers(cluster, postgresStopped)},
	{name: "cut", rig: namespaces, run: linkCut},
	{name: "frozen", run: failovers(multiAZ, frozen)},
	{name: "frozenwarm", run: failovers(warm, frozen)},
	{name: "frozen3", run: failovers(cluster, frozen)},
	{name: "killed", run: failovers(multiAZ, allKilled)},
	{name: "killed3", run: failovers(cluster, allKilled)},
	{name: "standby", run: failovers(multiAZ, standbyFrozen)},
	{name: "standby3", run: failovers(cluster, standbyFrozen)},
	{name: "both", run: failovers(multiAZ, bothKilled)},
	{name: "both3", run: failovers(cluster, bothKilled)},
	{name: "user", rig: ordinaryUser, run: failovers(multiAZ, asUser(frozen))},
	{name: "alarms", run: falseAlarms},
	{name: "reboot", run: failovers(multiAZ, rebooted)},
	{name: "rebootwarm", run: failovers(warm, rebooted)},
	{name: "cluster", run: failovers(cluster, clusterFailover)},
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

// proxied uses HAProxy for endpoints, although the kernel could serve them.
func proxied(o *rig.Options) { o.Edge = []string{"--driver", "haproxy"} }

func asUser(f fault) fault {
	f.name, f.target = f.name+", as an ordinary user", "8"
	return f
}

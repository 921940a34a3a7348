package main

import "howdah/internal/testkit/rig"

var scenarios = []scenario{
	{name: "crash", run: failovers(postgresKilled)},
	{name: "cut", rig: namespaces, run: linkCut},
	{name: "frozen", run: failovers(frozen)},
	{name: "killed", run: failovers(allKilled)},
	{name: "user", rig: ordinaryUser, run: failovers(asUser(frozen))},
}

// namespaces gives every host a network namespace of its own.
func namespaces(o *rig.Options) { o.Netns = true }

// ordinaryUser runs everything without privileges: no cgroups, no rules in the
// kernel, HAProxy for endpoints.
func ordinaryUser(o *rig.Options) { o.User = &rig.Account{UID: 65534, GID: 65534} }

func asUser(f fault) fault {
	f.name, f.target = f.name+", as an ordinary user", "8"
	return f
}

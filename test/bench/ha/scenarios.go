package main

import "howdah/internal/testkit/rig"

var scenarios = []scenario{
	{name: "crash", run: failovers(postgresKilled)},
	{name: "frozen", run: failovers(frozen)},
	{name: "killed", run: failovers(allKilled)},
	{name: "user", rig: ordinaryUser, run: failovers(frozen)},
}

// ordinaryUser runs everything without privileges: no cgroups, no rules in the
// kernel, HAProxy for endpoints.
func ordinaryUser(o *rig.Options) { o.User = &rig.Account{UID: 65534, GID: 65534} }

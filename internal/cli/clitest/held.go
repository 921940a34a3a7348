package clitest

import "howdah/internal/admin"

// fakeHeld is what the fake's hosts have since the home was restored.
var fakeHeld = admin.Held{
	Restored: true, From: "/mnt/backups/howdah-1f2e3d4c-20261121T090000.000Z", Taken: "2026-11-21T09:00:00Z", Missing: []string{"zone-c"},
	Copies: []admin.Copy{
		{Database: "billing", Known: true, Copy: "zone-a/m1", Running: true, Primary: true, Timeline: 1, LSN: "0/3000060"},
		{Database: "db-later", Copy: "zone-b/m1", Running: true, Primary: true, Timeline: 1, LSN: "0/3000148"},
		{Database: "orders", Known: true, Held: true, Why: "waits for zone-c to say what data are there", Copy: "zone-a/m1", Timeline: 1, LSN: "0/3000148", Primary: true},
		{Database: "orders", Known: true, Held: true, Why: "waits for zone-c to say what data are there", Copy: "zone-b/m2", Running: true, Primary: true, Timeline: 2, LSN: "0/4000060"},
	},
}

package soak

// known are verbs that are left out while a bug is mended that they would find each time,
// with the reason. HOWDAH_SOAK_KNOWN=1 draws them all the same.
var known = map[string]string{
	"replica": "members of a replica have the names of its source's: one may stand for the standby",
	"cancel":  "a cancelled wait for the standby acknowledges the commit",
}

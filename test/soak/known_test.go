package soak

// known are verbs that are left out while a bug is mended that they would find each time,
// with the reason. HOWDAH_SOAK_KNOWN=1 draws them all the same.
var known = map[string]string{}

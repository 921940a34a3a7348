package soak

// known has verbs that are left out while a bug is mended that they would find each time, with the
// reason. With HOWDAH_SOAK_KNOWN=1 they are drawn all the same.
var known = map[string]string{}

// Package kind names the kinds of keys that a certificate can have. It does no I/O.
package kind

// The kinds. The zero value is what the home itself uses.
const (
	EC256   = ""
	EC384   = "ec384"
	RSA2048 = "rsa2048"
	RSA4096 = "rsa4096"
)

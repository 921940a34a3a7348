package admin

import "time"

// AuthorityRequest asks for a newer authority of a line, such as rds-ca-rsa2048. "" is the home's
// own line.
type AuthorityRequest struct {
	Line string `json:"line,omitempty"`
}

// AuthorityListAnswer has all authorities that sign the certificates of databases, by name.
type AuthorityListAnswer struct {
	Authorities []Authority `json:"authorities"`
}

// Authority is one such authority.
type Authority struct {
	Name       string    `json:"name"`
	ValidFrom  time.Time `json:"valid_from"`
	ValidTill  time.Time `json:"valid_till"`
	Thumbprint string    `json:"thumbprint"` // SHA-256, in hex
	// Newer is the authority that takes its place, or "".
	Newer string `json:"newer,omitempty"`
	// Databases is how many instances and Multi-AZ DB clusters of all accounts are to have
	// certificates of it.
	Databases int `json:"databases"`
}

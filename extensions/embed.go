// Package extensions carries the SQL of our PostgreSQL extensions that the
// platform itself runs.
package extensions

import _ "embed"

// Bootstrap sets the platform's roles and rights up in one database. It is
// idempotent; run it as rdsadmin.
//
//go:embed howdah/bootstrap.sql
var Bootstrap string

// Package extensions carries the SQL of our PostgreSQL extensions that the
// platform itself runs.
package extensions

import _ "embed"

// Bootstrap sets the platform's roles and rights up in one database. It is
// idempotent; run it as rdsadmin.
//
//go:embed howdah/bootstrap.sql
var Bootstrap string

// Cache is the script of the extension ccm, for CREATE EXTENSION.
//
//go:embed ccm/ccm--1.0.sql
var Cache string

// Drivers makes what AWS's drivers ask a cluster's servers, in parts: its head says which database
// takes which.
//
//go:embed howdah/drivers.sql
var Drivers string

// Slots lets members of rds_replication use logical slots, in one database. It is idempotent; run it
// as rdsadmin, where the module is loaded.
//
//go:embed howdah/slots.sql
var Slots string

// SlotsUndo gives PostgreSQL's own functions their names back, in one database: for a server without
// the module.
//
//go:embed howdah/slots_undo.sql
var SlotsUndo string

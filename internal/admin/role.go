package admin

import "time"

// RoleAddRequest makes a role that lets databases into a bucket of an S3 server.
type RoleAddRequest struct {
	Account string `json:"account,omitempty"` // twelve digits; "": the home's
	Name    string `json:"name"`
	// As in spec.BucketRole.
	Endpoint  string `json:"endpoint"`
	Region    string `json:"region,omitempty"`
	Bucket    string `json:"bucket"`
	Prefix    string `json:"prefix,omitempty"`
	CA        string `json:"ca,omitempty"`
	AccessKey string `json:"access_key"`
	Secret    string `json:"secret"`
	// Replace takes the place of a role that there is already: databases that have it use the new
	// one from then on.
	Replace bool `json:"replace,omitempty"`
}

// RoleRequest names a role.
type RoleRequest struct {
	Account string `json:"account,omitempty"` // twelve digits; "": the home's
	Name    string `json:"name"`
}

// RoleListAnswer has all roles, by account and name.
type RoleListAnswer struct {
	Roles []Role `json:"roles"`
}

// Role lets databases into a bucket. Its secret is never told.
type Role struct {
	ARN       string    `json:"arn"`
	Account   string    `json:"account"`
	Name      string    `json:"name"`
	Endpoint  string    `json:"endpoint"`
	Region    string    `json:"region,omitempty"`
	Bucket    string    `json:"bucket"`
	Prefix    string    `json:"prefix,omitempty"`
	AccessKey string    `json:"access_key"`
	Created   time.Time `json:"created"`
	// Databases are those that have the role, by name, each with what for.
	Databases []RoleUse `json:"databases"`
}

// RoleUse is a database that has a role.
type RoleUse struct {
	Database string `json:"database"`
	Region   string `json:"region"` // of the database
	Feature  string `json:"feature"`
}

package spec

import (
	"regexp"
	"strings"
	"time"
)

// BucketRole is an IAM role that lets databases export to a bucket of an S3 server, and import from
// it. The operator makes it for an account. A database has it as soon as it is associated with its
// ARN, for s3Export or s3Import. Server writes the record.
type BucketRole struct {
	Account string `json:"account"`
	Name    string `json:"name"`
	// Endpoint is the URL of the server, and Region what requests are signed for. CA is the
	// certificate, as PEM, that signs the server's; "" stands for the system's authorities.
	Endpoint string `json:"endpoint"`
	Region   string `json:"region,omitempty"`
	Bucket   string `json:"bucket"`
	// Prefix is "", or ends in a slash. Then the names of objects begin with it.
	Prefix string `json:"prefix,omitempty"`
	CA     string `json:"ca,omitempty"`
	// AccessKey and Secret log in. Secret is sealed with the home's key.
	AccessKey string    `json:"access_key"`
	Secret    []byte    `json:"secret"`
	Created   time.Time `json:"created"`
}

// ARN returns the ARN by which a database is associated with the role.
func (r BucketRole) ARN() string { return "arn:aws:iam::" + r.Account + ":role/" + r.Name }

// bucketRoleForm is what IAM takes as the name of a role. None has a slash.
var bucketRoleForm = regexp.MustCompile(`^[\w+=,.@-]{1,64}$`)

// CheckBucketRoleName reports whether a role may have this name.
func CheckBucketRoleName(name string) bool { return bucketRoleForm.MatchString(name) }

// RoleFor returns the name of the role that a database has for a feature, or "". A role of another
// account is none: whoever writes the ARN of a neighbour's role does not get its key.
func (c Common) RoleFor(feature string) string {
	for _, r := range c.Roles {
		name, own := strings.CutPrefix(r.ARN, BucketRole{Account: c.Account}.ARN())
		if r.Feature == feature && own && CheckBucketRoleName(name) {
			return name
		}
	}
	return ""
}

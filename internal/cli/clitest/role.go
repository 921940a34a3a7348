package clitest

import (
	"cmp"
	"strings"

	"howdah/internal/admin"
)

// fakeRoles are those that the fake control plane has.
var fakeRoles = []admin.Role{
	{
		ARN: "arn:aws:iam::123456789012:role/exports", Account: "123456789012", Name: "exports", Endpoint: "https://s3.example.com", Bucket: "reports", Prefix: "orders/",
		AccessKey: "AK", Created: Noon, Databases: []admin.RoleUse{
			{Database: "billing", Region: "us-east-1", Feature: "s3Import"}, {Database: "orders", Region: "us-east-1", Feature: "s3Export"},
		},
	},
	{
		ARN: "arn:aws:iam::123456789012:role/imports", Account: "123456789012", Name: "imports", Endpoint: "https://s3.example.com", Region: "eu-west-1", Bucket: "feeds",
		AccessKey: "AK", Created: Noon, Databases: []admin.RoleUse{},
	},
}

// role answers the verbs on roles.
func (f *Fake) role(verb string, body []byte) any {
	switch verb {
	case admin.VerbRoleList:
		if f.empty {
			return admin.RoleListAnswer{Roles: []admin.Role{}}
		}
		return admin.RoleListAnswer{Roles: fakeRoles}
	case admin.VerbRoleAdd:
		var in admin.RoleAddRequest
		read(body, &in)
		account := cmp.Or(in.Account, "123456789012")
		prefix := in.Prefix
		if prefix != "" && !strings.HasSuffix(prefix, "/") {
			prefix += "/"
		}
		return admin.Role{
			ARN: "arn:aws:iam::" + account + ":role/" + in.Name, Account: account, Name: in.Name, Endpoint: in.Endpoint, Region: in.Region, Bucket: in.Bucket,
			Prefix: prefix, AccessKey: in.AccessKey, Created: Noon, Databases: []admin.RoleUse{},
		}
	}
	return fakeRoles[1]
}

package clitest

import (
	"cmp"
	"time"

	"howdah/internal/admin"
)

// fakeRepositories are those that the fake control plane has.
var fakeRepositories = []admin.Repository{
	{
		Name: "default", ID: "repo-0123456789abcdef", Kind: "directory", Path: "/var/lib/howdah/repository", Default: true, Encrypted: true,
		Created: Noon, Databases: []string{"billing", "orders"}, Backups: 9, Snapshots: 3, Stored: 7 << 30,
	},
	{
		Name: "far", ID: "repo-fedcba9876543210", Kind: "s3", Endpoint: "https://s3.example.com", Bucket: "howdah", Prefix: "copies/", AccessKey: "AK",
		Copies: true, Encrypted: true, Exported: Noon.Add(-24 * time.Hour), Created: Noon, Databases: []string{},
		Copied: fakeCopies, Seconds: []string{"orders"},
	},
	{Name: "plain", ID: "repo-1111111111111111", Kind: "directory", Path: "/mnt/plain", Created: Noon, Databases: []string{}},
}

// repository answers the verbs on repositories.
func (f *Fake) repository(verb string, body []byte) any {
	var in struct {
		Name string `json:"name"`
	}
	if verb == admin.VerbRepositoryAdd {
		var full admin.RepositoryAddRequest
		read(body, &full)
		return admin.Repository{
			Name: full.Name, ID: "repo-2222222222222222", Kind: map[bool]string{true: "s3", false: "directory"}[full.Path == ""], Path: full.Path, Endpoint: full.Endpoint, Bucket: full.Bucket,
			Prefix: full.Prefix, Default: full.Default, Copies: full.Copies, Encrypted: !full.Unencrypted, Created: Noon, Databases: []string{},
		}
	}
	one := fakeRepositories[0]
	if verb != admin.VerbRepositoryList {
		read(body, &in)
	}
	for _, r := range fakeRepositories {
		if r.Name == in.Name {
			one = r
		}
	}
	switch verb {
	case admin.VerbRepositoryList:
		if f.empty {
			return admin.RepositoryListAnswer{Repositories: []admin.Repository{}}
		}
		return admin.RepositoryListAnswer{Repositories: fakeRepositories}
	case admin.VerbRepositoryCheck:
		return fakeCheck(one.Name)
	case admin.VerbRepositoryRemove:
		return admin.RepositoryRemoveAnswer{Repository: one, Objects: 7}
	case admin.VerbRepositoryKeyExport:
		return admin.RepositoryKeyAnswer{Name: one.Name, Text: "Howdah repository key, version 1\nname:  " + one.Name + "\nkey:   AAAA-BBBB\n"}
	}
	one.Size, one.Free = 100<<30, 40<<30
	one.Trouble = cmp.Or(one.Trouble, map[string]string{"plain": "it is no repository of Howdah, or its file system is not mounted"}[one.Name])
	return one
}

// fakeCheck is a repository that works everywhere, or only in some places if its name is plain.
func fakeCheck(name string) admin.RepositoryCheckAnswer {
	all := []admin.RepositoryCheck{{From: "control plane"}, {From: "zone-a"}, {From: "zone-b"}, {From: "zone-c", Skipped: true}}
	if name == "plain" {
		all[2].Trouble, all[2].Hint = "what one writes the other does not see", "the directory must be the same file system on all hosts"
	}
	return admin.RepositoryCheckAnswer{Name: name, Looks: all}
}

package server

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire/sigv4"
)

// calls is a call of a verb with a key of these limits.
func (u *user) calls(name, statements string) front.Call {
	u.Helper()
	k := u.withPolicy(statements)
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", nil)
	sigv4.Sign(r, nil, sigv4.Credentials{AccessKeyID: k.key, SecretAccessKey: k.secret}, k.region, admin.Service, k.now())
	record := u.server.front.Begin(r, "an-id")
	identity, who, err := u.server.front.Authenticate(r, nil, record)
	if err != nil {
		u.Fatal(err)
	}
	return u.server.front.Call(r, identity, who, verb.Action(name), "an-id", record)
}

// A policy that denies a database, or a snapshot, by the name that RDS has for it denies a copy of its
// data by the verbs of the home, too. So does one for the name of what is made.
func TestCopiesOfDataThatAPolicyDenies(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	having(with(newDB, backed), newSnap)(u)
	u.backedUp("db", 3*hour, hour)
	moment := admin.RestorePoint{Time: u.ago(2 * hour)}
	verbs := map[string]func(c front.Call) error{
		"a moment": func(c front.Call) error {
			_, err := ask[admin.RestorePlan](t, u.world, c, admin.VerbRestore, admin.RestoreRequest{Name: "copy", From: "db", RestorePoint: moment, DryRun: true})
			return err
		},
		"a clone": func(c front.Call) error {
			_, err := ask[admin.RestorePlan](t, u.world, c, admin.VerbRestore, admin.RestoreRequest{Name: "copy", From: "db", RestorePoint: admin.RestorePoint{Live: true}, DryRun: true})
			return err
		},
		"a snapshot": func(c front.Call) error {
			_, err := ask[admin.RestorePlan](t, u.world, c, admin.VerbRestore, admin.RestoreRequest{Name: "copy", RestorePoint: admin.RestorePoint{Snapshot: "snap"}, DryRun: true})
			return err
		},
		"a download": func(c front.Call) error {
			_, err := ask[admin.SnapshotDownload](t, u.world, c, admin.VerbSnapshotDownload, admin.SnapshotDownloadRequest{Snapshot: "snap", Format: "directory", DryRun: true})
			return err
		},
		"a snapshot's copy": func(c front.Call) error {
			_, err := ask[admin.SnapshotCopy](t, u.world, c, admin.VerbSnapshotCopy, admin.SnapshotCopyRequest{Snapshot: "snap", Name: "again", DryRun: true})
			return err
		},
	}
	names := map[string]string{"a moment": admin.VerbRestore, "a clone": admin.VerbRestore, "a snapshot": admin.VerbRestore, "a download": admin.VerbSnapshotDownload, "a snapshot's copy": admin.VerbSnapshotCopy}
	for denies, refused := range map[string][]string{
		`"Resource":"arn:aws:rds:*:*:db:db"`:                                          {"a moment", "a clone"},
		`"Resource":"arn:aws:rds:*:*:auto-backup:*"`:                                  {"a moment"},
		`"Resource":"arn:aws:rds:*:*:snapshot:snap"`:                                  {"a snapshot", "a download", "a snapshot's copy"},
		`"Resource":"arn:aws:rds:*:*:db:copy"`:                                        {"a moment", "a clone", "a snapshot"},
		`"Resource":"arn:aws:rds:*:*:snapshot:ag*"`:                                   {"a snapshot's copy"},
		`"Resource":"arn:aws:rds:*:*:db:other"`:                                       nil,
		`"Resource":"arn:aws:rds:*:*:cluster:db"`:                                     nil,
		`"Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/team":"blue"}}`: nil,
	} {
		statements := `[` + allowAll + `,{"Effect":"Deny","Action":"*",` + denies + `}]`
		for name, do := range verbs {
			err := do(u.calls(names[name], statements))
			is, want := err != nil && strings.Contains(err.Error(), "explicit deny"), slices.Contains(refused, name)
			if is != want || err != nil && !is {
				t.Errorf("deny %s: %s: %v", denies, name, err)
			}
		}
	}
}

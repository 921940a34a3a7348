package serve

import (
	"errors"
	"testing"

	"howdah/internal/identity/bucket"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
	"howdah/internal/testkit/hometest"
)

// A control plane knows what the role of an instance or a cluster opens, and that a neighbour's role
// opens nothing.
func TestBuckets(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	cache := etcdtest.Cache(t, h.Store, nil)
	seal, err := h.SealKey()
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := bucket.NewSealer(seal)
	if err != nil {
		t.Fatal(err)
	}
	role := sealer.Seal(spec.BucketRole{Account: "123456789012", Name: "exports", Endpoint: "https://s3", Bucket: "b", AccessKey: "AK"}, "s3cret")
	common := func(account, id string) spec.Common {
		return spec.Common{Scope: spec.Scope{Account: account, Region: "r"}, Name: id, ResourceID: id, Roles: []spec.Role{{ARN: role.ARN(), Feature: member.Export}}}
	}
	etcdtest.Put(t, h.Store, cache,
		state.Put(state.BucketRole(role.Account, role.Name), role),
		state.Put(state.Instance("123456789012", "r", "db-1"), spec.Instance{Common: common("123456789012", "db-1")}),
		state.Put(state.Cluster("123456789012", "r", "cluster-1"), spec.Cluster{Common: common("123456789012", "cluster-1")}),
		state.Put(state.Instance("210987654321", "r", "db-2"), spec.Instance{Common: common("210987654321", "db-2")}),
	)
	open := Config{Home: h.Home}.buckets(h.Store, cache)
	for _, c := range []struct {
		database, feature string
		opens             bool
	}{
		{"db-1", member.Export, true},
		{"cluster-1", member.Export, true},
		{"db-1", member.Import, false},
		{"db-2", member.Export, false},
		{"db-3", member.Export, false},
	} {
		got, err := open(t.Context(), c.database, c.feature)
		if c.opens && (err != nil || got.Secret != "s3cret") || !c.opens && !errors.Is(err, member.ErrNoRole) {
			t.Errorf("%s for %s: %+v, %v", c.database, c.feature, got, err)
		}
	}
}

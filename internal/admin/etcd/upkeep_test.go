package etcd

import (
	"context"
	"log/slog"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit/etcdtest"
)

// keeper pretends.
type keeper struct{}

func (keeper) Plan(context.Context) ([]etcd.Deed, error) {
	return []etcd.Deed{{Kind: etcd.Disarm, Why: "planned"}}, nil
}

func (keeper) Mend(context.Context) ([]etcd.Deed, error) {
	return []etcd.Deed{{Kind: etcd.Disarm, Why: "done"}}, nil
}
func (keeper) Compact(context.Context) (etcd.Deed, error) { return etcd.Deed{}, nil }
func (keeper) Defrag(context.Context, string) (etcd.Deed, error) {
	return etcd.Deed{}, etcd.ErrNoMember
}
func (keeper) Disarm(context.Context) (etcd.Deed, error) { return etcd.Deed{}, nil }

func TestUpkeepIsAsked(t *testing.T) {
	members := &Members{Client: etcdtest.Store(t).Client}
	s := &service{Config{Members: members, Upkeep: keeper{}, Log: slog.New(slog.DiscardHandler)}}
	for _, c := range []struct {
		in   admin.EtcdRequest
		want string
	}{
		{admin.EtcdRequest{Do: admin.EtcdMend}, "disarm the alarm: done"},
		{admin.EtcdRequest{Do: admin.EtcdMend, DryRun: true}, "disarm the alarm: planned"},
		{admin.EtcdRequest{Do: admin.EtcdCompact, DryRun: true}, "InvalidRequest: Only mend has a dry run."},
		{admin.EtcdRequest{Do: admin.EtcdDefrag, Member: "s9"}, "InvalidRequest: etcd has no member s9."},
		{admin.EtcdRequest{Do: "melt"}, "InvalidRequest: There is nothing to do that is called melt."},
	} {
		out, err := s.do(t.Context(), front.Call{}, c.in)
		got := ""
		if err != nil {
			got = err.Error()
		} else if len(out.Deeds) == 1 && len(out.Members) == 1 && out.Members[0].Quota == etcd.DefaultQuota {
			got = out.Deeds[0]
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.in, got, c.want)
		}
	}
}

package etcdgate

import (
	"runtime"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// A message of 2 MiB may hold half a million operations. They are counted before all of them are
// taken apart.
func TestAMessageOfManyOperations(t *testing.T) {
	q := &pb.TxnRequest{}
	one := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{}}}
	q.Success = make([]*pb.RequestOp, 500_000)
	for n := range q.Success {
		q.Success[n] = one
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all, err := needsOf(q, ofHost.needs)
	runtime.ReadMemStats(&after)
	if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 8 {
		t.Errorf("%d operations take %d MiB before they are refused, %v", len(all), taken, err)
	}
}

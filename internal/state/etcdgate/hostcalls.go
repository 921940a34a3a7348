package etcdgate

import (
	"context"
	"errors"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// Agents and edges make these calls besides reads, transactions and watches.

// hostKV also puts and deletes.
type hostKV struct{ kvServer }

// Put writes one of the host's keys.
func (s *hostKV) Put(ctx context.Context, q *pb.PutRequest) (*pb.PutResponse, error) {
	if err := s.gate.check(ctx, []need{needOfPut(q)}, proto.Size(q)); err != nil {
		return nil, err
	}
	return reading(ctx, s.gate, q, s.etcd.Put)
}

// DeleteRange removes some of the host's keys.
func (s *hostKV) DeleteRange(ctx context.Context, q *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if err := s.gate.check(ctx, []need{{keys: keys{q.Key, q.RangeEnd}, deed: deletes}}, proto.Size(q)); err != nil {
		return nil, err
	}
	return reading(ctx, s.gate, q, s.etcd.DeleteRange)
}

// leaseServer is for the host's own leases.
type leaseServer struct {
	pb.UnimplementedLeaseServer
	gate *Gate
	etcd pb.LeaseClient
}

// LeaseGrant grants a lease. The lease's number says whose it is.
func (s *leaseServer) LeaseGrant(ctx context.Context, q *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	own := callerOf(ctx)
	if !s.gate.budget.spend(own.account(), leaseCost) {
		return nil, asStatus(errBudget)
	}
	if q.GetID() != 0 {
		return nil, errNotForHosts // see leaseFor
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.etcd.LeaseGrant(asked(ctx), &pb.LeaseGrantRequest{TTL: min(q.GetTTL(), mostTTL), ID: leaseFor(own.account())})
}

// LeaseRevoke ends a lease.
func (s *leaseServer) LeaseRevoke(ctx context.Context, q *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.mayUse(ctx, q.GetID()); err != nil {
		return nil, asStatus(err)
	}
	return s.etcd.LeaseRevoke(asked(ctx), q)
}

// LeaseTimeToLive tells of any lease: whoever reads a key under a lease may know that it lives. It
// names no keys.
func (s *leaseServer) LeaseTimeToLive(ctx context.Context, q *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.etcd.LeaseTimeToLive(asked(ctx), &pb.LeaseTimeToLiveRequest{ID: q.GetID()})
}

// LeaseKeepAlive keeps leases alive, each until it no longer belongs to the caller.
func (s *leaseServer) LeaseKeepAlive(down pb.Lease_LeaseKeepAliveServer) error {
	ctx, cancel := context.WithCancel(down.Context())
	defer cancel()
	up, err := s.etcd.LeaseKeepAlive(asked(ctx))
	if err != nil {
		return err
	}
	for {
		q, err := down.Recv()
		if err != nil {
			return nil // the caller has hung up
		}
		answer, err := s.keepAlive(ctx, up, q)
		if err == nil {
			err = down.Send(answer)
		}
		if err != nil {
			return err
		}
	}
}

func (s *leaseServer) keepAlive(ctx context.Context, up pb.Lease_LeaseKeepAliveClient, q *pb.LeaseKeepAliveRequest) (*pb.LeaseKeepAliveResponse, error) {
	if err := s.gate.budget.wait(ctx, callerOf(ctx).account()); err != nil {
		return nil, asStatus(err)
	}
	err := s.mayUse(ctx, q.GetID())
	if errors.Is(err, errLease) {
		return &pb.LeaseKeepAliveResponse{Header: &pb.ResponseHeader{}, ID: q.GetID()}, nil // as of one that has ended
	}
	if err != nil {
		return nil, asStatus(err)
	}
	if err := up.Send(q); err != nil {
		return nil, err
	}
	return up.Recv()
}

func (s *leaseServer) mayUse(ctx context.Context, id int64) error {
	return s.gate.mayUse(ctx, number(strconv.FormatInt(id, 10)), callerOf(ctx))
}

// clusterServer tells which control planes there are.
type clusterServer struct {
	pb.UnimplementedClusterServer
	etcd pb.ClusterClient
}

// MemberList names them.
func (s *clusterServer) MemberList(ctx context.Context, q *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.etcd.MemberList(asked(ctx), q)
}

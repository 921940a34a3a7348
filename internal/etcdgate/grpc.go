package etcdgate

import (
	"context"
	"errors"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// kvServer answers what package gate asks: reads, and transactions.
type kvServer struct {
	pb.UnimplementedKVServer
	gate *Gate
	etcd pb.KVClient
}

// Range reads the member's keys, also as they were.
func (s *kvServer) Range(ctx context.Context, q *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := s.gate.check(ctx, []need{{keys: keys{q.Key, q.RangeEnd}}}, proto.Size(q)); err != nil {
		return nil, err
	}
	return reading(ctx, s.gate, q, s.etcd.Range)
}

// Txn reads and writes the member's keys.
func (s *kvServer) Txn(ctx context.Context, q *pb.TxnRequest) (*pb.TxnResponse, error) {
	all, err := needsOf(q, 0)
	if err == nil {
		err = s.gate.check(ctx, all, proto.Size(q))
	}
	if err != nil {
		return nil, asStatus(err)
	}
	return reading(ctx, s.gate, q, s.etcd.Txn)
}

// reading passes a checked request on when there is room for its answer.
func reading[Q any, A proto.Message](ctx context.Context, g *Gate, q Q, pass func(context.Context, Q, ...grpc.CallOption) (A, error)) (answer A, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	own, _ := ctx.Value(caller{}).(rights)
	done, err := g.budget.read(ctx, own.scope)
	if err != nil {
		return answer, asStatus(err)
	}
	answer, err = pass(ctx, q)
	done(proto.Size(answer))
	return answer, err
}

// watchServer answers a watch of the member's keys.
type watchServer struct {
	pb.UnimplementedWatchServer
	gate *Gate
	etcd pb.WatchClient
}

// Watch passes the checked requests on, and what etcd says back, until one side ends.
func (s *watchServer) Watch(down pb.Watch_WatchServer) error {
	ctx, cancel := context.WithCancel(down.Context())
	defer cancel()
	up, err := s.etcd.Watch(ctx)
	if err != nil {
		return err
	}
	refused := make(chan error, 1)
	go func() {
		refused <- s.ask(down, up)
		cancel()
	}()
	for {
		answer, err := up.Recv()
		if err == nil {
			err = down.Send(answer)
		}
		if err == nil {
			continue
		}
		select {
		case why := <-refused:
			return why
		default:
			return err
		}
	}
}

// mostWatches is how many watches one stream may have, and mostAsked how many requests of
// any kind: a gate has one watch at a time, which it begins and ends.
const (
	mostWatches = 16
	mostAsked   = 64
)

// ask passes requests on. It ends with nil where the caller has no more.
func (s *watchServer) ask(down pb.Watch_WatchServer, up pb.Watch_WatchClient) error {
	created := 0
	for asked := 0; ; asked++ {
		q, err := down.Recv()
		if err != nil {
			return nil //nolint:nilerr // the caller has hung up
		}
		if asked >= mostAsked {
			return asStatus(errBudget)
		}
		if create := q.GetCreateRequest(); create != nil {
			if created++; created > mostWatches {
				return asStatus(errBudget)
			}
			if err := s.gate.check(down.Context(), []need{{keys: keys{create.Key, create.RangeEnd}}}, proto.Size(q)); err != nil {
				return err
			}
		}
		if err := up.Send(q); err != nil {
			return err
		}
	}
}

// check is may, with the answer that gRPC gives.
func (g *Gate) check(ctx context.Context, all []need, size int) error {
	own, ok := ctx.Value(caller{}).(rights)
	if !ok {
		return status.Error(codes.PermissionDenied, "the certificate is of no member")
	}
	err := g.may(ctx, own, all, size)
	if errors.Is(err, errScope) {
		g.warn(own, err)
	}
	return asStatus(err)
}

func asStatus(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errScope):
		return status.Error(codes.PermissionDenied, "etcdserver: permission denied")
	case errors.Is(err, errLease):
		return status.Error(codes.NotFound, "etcdserver: requested lease not found")
	case errors.Is(err, errUnknown):
		return status.Error(codes.Unavailable, "etcd does not answer")
	case errors.Is(err, errBudget):
		return status.Error(codes.ResourceExhausted, "etcdserver: too many requests")
	case errors.Is(err, errForm):
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return err
}

// needsOf are those of a transaction.
func needsOf(q *pb.TxnRequest, depth int) (all []need, err error) {
	if depth > mostDepth {
		return nil, errForm
	}
	for _, c := range q.Compare {
		all = append(all, need{keys: keys{c.Key, c.RangeEnd}})
	}
	for _, o := range append(append([]*pb.RequestOp{}, q.Success...), q.Failure...) {
		switch o := o.Request.(type) {
		case *pb.RequestOp_RequestRange:
			all = append(all, need{keys: keys{o.RequestRange.GetKey(), o.RequestRange.GetRangeEnd()}})
		case *pb.RequestOp_RequestPut:
			n := need{keys: keys{Key: o.RequestPut.GetKey()}, deed: writes}
			if lease := o.RequestPut.GetLease(); lease != 0 {
				n.lease = number(strconv.FormatInt(lease, 10))
			}
			all = append(all, n)
		case *pb.RequestOp_RequestDeleteRange:
			all = append(all, need{keys: keys{o.RequestDeleteRange.GetKey(), o.RequestDeleteRange.GetRangeEnd()}, deed: deletes})
		case *pb.RequestOp_RequestTxn:
			if o.RequestTxn == nil {
				return nil, errForm
			}
			more, err := needsOf(o.RequestTxn, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		default:
			return nil, errForm
		}
	}
	return all, nil
}

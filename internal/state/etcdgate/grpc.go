package etcdgate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// kvServer answers what package gate asks for: reads and transactions.
type kvServer struct {
	pb.UnimplementedKVServer
	gate *Gate
	etcd pb.KVClient
}

// Range reads the member's keys, also older versions of them.
func (s *kvServer) Range(ctx context.Context, q *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := s.gate.check(ctx, []need{needOf(q)}, proto.Size(q)); err != nil {
		return nil, err
	}
	return reading(ctx, s.gate, q, s.etcd.Range)
}

// Txn reads and writes the member's keys.
func (s *kvServer) Txn(ctx context.Context, q *pb.TxnRequest) (*pb.TxnResponse, error) {
	all, err := needsOf(q, s.gate.budget.needs)
	if err == nil {
		err = s.gate.check(ctx, all, proto.Size(q))
	}
	if err != nil {
		return nil, asStatus(err)
	}
	return reading(ctx, s.gate, q, s.etcd.Txn)
}

// anySize lifts the limit on answers. The budget bounds them, and answers about all databases are
// long.
var anySize = grpc.MaxCallRecvMsgSize(math.MaxInt32)

// reading passes a checked request on once there is room for its answer.
func reading[Q any, A proto.Message](ctx context.Context, g *Gate, q Q, pass func(context.Context, Q, ...grpc.CallOption) (A, error)) (answer A, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	own := callerOf(ctx)
	if own == nil {
		return answer, errNobody
	}
	done, err := g.budget.read(ctx, own.account())
	if err != nil {
		return answer, asStatus(err)
	}
	answer, err = pass(asked(ctx), q, anySize)
	done(proto.Size(answer))
	return answer, err
}

// watchServer answers a watch of the member's keys.
type watchServer struct {
	pb.UnimplementedWatchServer
	gate *Gate
	etcd pb.WatchClient
}

// Watch passes checked requests on, and passes etcd's answers back, until one side ends.
func (s *watchServer) Watch(stream pb.Watch_WatchServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	down := &answers{Watch_WatchServer: stream}
	up, err := s.etcd.Watch(asked(ctx), anySize)
	if err != nil {
		return err
	}
	refused := make(chan error, 1)
	go func() {
		refused <- s.ask(ctx, down, up)
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

// answers is the stream to the caller. Two goroutines send on it: one passes answers on, and one
// refuses watches.
type answers struct {
	pb.Watch_WatchServer
	mu sync.Mutex
}

// Send implements pb.Watch_WatchServer.
func (a *answers) Send(answer *pb.WatchResponse) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Watch_WatchServer.Send(answer)
}

// ask passes requests on. It returns nil if the caller has no more.
func (s *watchServer) ask(ctx context.Context, down *answers, up pb.Watch_WatchClient) error {
	created := 0
	for asked := 0; ; asked++ {
		q, err := down.Recv()
		if err != nil {
			return nil //nolint:nilerr // the caller has hung up
		}
		if err := s.gate.budget.wait(ctx, callerOf(ctx).account()); err != nil || asked >= s.gate.budget.asked {
			return asStatus(errBudget)
		}
		if create := q.GetCreateRequest(); create != nil {
			if created++; created > s.gate.budget.watches {
				return asStatus(errBudget)
			}
			err := s.gate.check(ctx, []need{{keys: keys{create.Key, create.RangeEnd}}}, proto.Size(q))
			if status.Code(err) == codes.PermissionDenied {
				// As with etcd itself, the other watches of the stream go on.
				err = down.Send(&pb.WatchResponse{
					Header: &pb.ResponseHeader{}, WatchId: clientv3.InvalidWatchID, Created: true, Canceled: true, CancelReason: status.Convert(err).Message(),
				})
				if err == nil {
					continue
				}
			}
			if err != nil {
				return err
			}
		}
		if err := up.Send(q); err != nil {
			return err
		}
	}
}

var errNobody = status.Error(codes.PermissionDenied, "the certificate is of nobody who may ask")

// asked returns a context for a call to etcd. It passes on whether the caller wants an answer only
// while etcd has a leader.
func asked(ctx context.Context) context.Context {
	told, _ := metadata.FromIncomingContext(ctx)
	if v := told.Get(rpctypes.MetadataRequireLeaderKey); len(v) > 0 {
		return metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, v[0])
	}
	return ctx
}

// check is may, with the answer in the form of gRPC.
func (g *Gate) check(ctx context.Context, all []need, size int) error {
	own := callerOf(ctx)
	if own == nil {
		return errNobody
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

func needOf(q *pb.RangeRequest) need {
	return need{keys: keys{q.GetKey(), q.GetRangeEnd()}, names: q.GetKeysOnly() || q.GetCountOnly()}
}

func needOfPut(q *pb.PutRequest) need {
	n := need{keys: keys{Key: q.GetKey()}, deed: writes}
	n.value, n.ignoresValue = q.GetValue(), q.GetIgnoreValue()
	if lease := q.GetLease(); lease != 0 {
		n.lease = number(strconv.FormatInt(lease, 10))
	}
	return n
}

// needsOf returns the needs of a transaction. More than most is an error.
func needsOf(q *pb.TxnRequest, most int) ([]need, error) {
	t := &taking{most: most}
	err := t.txn(q, 0)
	return t.all, err
}

// taking takes a transaction apart.
type taking struct {
	most int
	all  []need
}

func (t *taking) add(n need) error {
	if len(t.all) >= t.most {
		return fmt.Errorf("%w: too much at once", errForm)
	}
	t.all = append(t.all, n)
	return nil
}

func (t *taking) txn(q *pb.TxnRequest, depth int) error {
	if depth > mostDepth || q == nil {
		return errForm
	}
	absent := map[string]bool{}
	for _, c := range q.Compare {
		if err := t.add(need{keys: keys{c.Key, c.RangeEnd}, compares: true}); err != nil {
			return err
		}
		if revision, ok := c.TargetUnion.(*pb.Compare_ModRevision); ok && revision.ModRevision == 0 &&
			c.Target == pb.Compare_MOD && c.Result == pb.Compare_EQUAL && len(c.RangeEnd) == 0 {
			absent[string(c.Key)] = true
		}
	}
	for _, o := range q.Success {
		if err := t.op(o, absent, depth); err != nil {
			return err
		}
	}
	for _, o := range q.Failure {
		if err := t.op(o, nil, depth); err != nil {
			return err
		}
	}
	return nil
}

// op takes one operation apart. absent has the keys that do not exist when it is done.
func (t *taking) op(op *pb.RequestOp, absent map[string]bool, depth int) error {
	switch o := op.GetRequest().(type) {
	case *pb.RequestOp_RequestRange:
		return t.add(needOf(o.RequestRange))
	case *pb.RequestOp_RequestPut:
		n := needOfPut(o.RequestPut)
		n.fresh = absent[string(n.Key)]
		return t.add(n)
	case *pb.RequestOp_RequestDeleteRange:
		return t.add(need{keys: keys{o.RequestDeleteRange.GetKey(), o.RequestDeleteRange.GetRangeEnd()}, deed: deletes})
	case *pb.RequestOp_RequestTxn:
		return t.txn(o.RequestTxn, depth+1)
	}
	return errForm
}

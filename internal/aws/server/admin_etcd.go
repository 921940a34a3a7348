package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/status"

	"howdah/internal/admin"
	"howdah/internal/identity/certs"
	"howdah/internal/state/etcd"
)

// etcdPatience is how long a member of etcd may take to say how it is.
const etcdPatience = time.Second

// etcdOut asks every member of etcd how it is, all at once.
func (s *Server) etcdOut(ctx context.Context) []admin.EtcdMember {
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	list, err := s.Store.Client.MemberList(ctx)
	if err != nil {
		return []admin.EtcdMember{{Name: "unknown", Error: reason(err)}}
	}
	own, err := s.Store.Client.Status(ctx, "")
	if err != nil {
		own = nil
	}
	all := make([]admin.EtcdMember, len(list.Members))
	var asked sync.WaitGroup
	for i, m := range list.Members {
		out := &all[i]
		*out = admin.EtcdMember{Name: m.Name, ID: fmt.Sprintf("%016x", m.ID), Learner: m.IsLearner, URL: strings.Join(m.ClientURLs, ",")}
		if own != nil && own.Header.MemberId == m.ID {
			describe(out, own)
			continue
		}
		asked.Go(func() { s.askEtcd(ctx, out, m.ClientURLs) })
	}
	asked.Wait()
	return all
}

func describe(out *admin.EtcdMember, answer *clientv3.StatusResponse) {
	out.Leader, out.Bytes = answer.Leader == answer.Header.MemberId, answer.DbSizeInUse
	out.Size, out.Quota = answer.DbSize, answer.DbSizeQuota
	out.Scarce = etcd.Condition{Size: out.Size, Quota: out.Quota}.Scarce()
	// Each member names the alarms of all, which is no fault of its own.
	var faults []string
	for _, text := range answer.Errors {
		if etcd.IsFull(text) {
			out.Full = true
		} else {
			faults = append(faults, text)
		}
	}
	out.Healthy, out.Error = len(faults) == 0, strings.Join(faults, "; ")
}

// askEtcd asks a member on another machine.
func (s *Server) askEtcd(ctx context.Context, out *admin.EtcdMember, urls []string) {
	if len(urls) == 0 {
		out.Error = "it has not started yet"
		return
	}
	answer, err := s.remoteEtcd(ctx, urls[0])
	if err != nil {
		out.Error = reason(err)
		return
	}
	describe(out, answer)
}

func (s *Server) remoteEtcd(ctx context.Context, url string) (*clientv3.StatusResponse, error) {
	pair, err := certs.Load(s.Home.CertDir())
	if err != nil {
		return nil, err
	}
	client, err := etcd.Dial(ctx, []string{url}, pair)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Status(ctx, url)
}

// reason is an error without gRPC's wrapping.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer within " + etcdPatience.String()
	}
	text := status.Convert(err).Message()
	if strings.Contains(text, context.DeadlineExceeded.Error()) {
		return "no answer within " + etcdPatience.String()
	}
	return text
}

// Package etcd has the admin API's verb on etcd, and asks etcd's members how they are.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"howdah/internal/admin"
	"howdah/internal/identity/certs"
	"howdah/internal/state/etcd"
)

// patience is how long a member of etcd may take to say how it is.
const patience = time.Second

// Members asks the members of etcd. All fields are required.
type Members struct {
	Client *clientv3.Client
	// CertDir has the certificate for calls to members on other machines.
	CertDir string
}

// Ask asks every member of etcd at once how it is.
func (a *Members) Ask(ctx context.Context) []admin.EtcdMember {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := a.Client.MemberList(ctx)
	if err != nil {
		return []admin.EtcdMember{{Name: "unknown", Error: reason(err)}}
	}
	own, err := a.Client.Status(ctx, "")
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
		asked.Go(func() { a.one(ctx, out, m.ClientURLs) })
	}
	asked.Wait()
	return all
}

func describe(out *admin.EtcdMember, answer *clientv3.StatusResponse) {
	out.Leader, out.Bytes = answer.Leader == answer.Header.MemberId, answer.DbSizeInUse
	out.Size, out.Quota = answer.DbSize, answer.DbSizeQuota
	out.Scarce = etcd.Condition{Size: out.Size, Quota: out.Quota}.Scarce()
	// Each member names the alarms of all members. They are no fault of its own.
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

// one asks a member on another machine.
func (a *Members) one(ctx context.Context, out *admin.EtcdMember, urls []string) {
	if len(urls) == 0 {
		out.Error = "it has not started yet"
		return
	}
	answer, err := a.remote(ctx, urls[0])
	if err != nil {
		out.Error = reason(err)
		return
	}
	describe(out, answer)
}

func (a *Members) remote(ctx context.Context, url string) (*clientv3.StatusResponse, error) {
	pair, err := certs.Load(a.CertDir)
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

// reason returns an error without gRPC's wrapping.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded {
		return "no answer within " + patience.String()
	}
	return status.Convert(err).Message()
}

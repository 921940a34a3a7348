package state

import (
	"fmt"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// stream is the connection that the watches of all caches of a client share: a member
// of etcd has thousands of clients, and needs much memory for each stream. What answers
// one cache's question is heard by all. A dead one is left by all of them for the next,
// as soon as the first of them notices.
type stream struct {
	client *clientv3.Client
	number int64
}

// streams are the numbers of the streams in use: a process has few clients.
var streams sync.Map // of *clientv3.Client to *atomic.Int64

func streamOf(client *clientv3.Client) stream {
	number, _ := streams.LoadOrStore(client, &atomic.Int64{})
	return stream{client, number.(*atomic.Int64).Load()}
}

func (s stream) name() string { return fmt.Sprintf("%p.%d", s.client, s.number) }

// leave has everyone use another stream from now on, unless somebody did so before.
func (s stream) leave() {
	if number, ok := streams.Load(s.client); ok {
		number.(*atomic.Int64).CompareAndSwap(s.number, s.number+1)
	}
}

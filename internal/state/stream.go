package state

import (
	"fmt"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// stream is the connection that the watches of all caches of a client share: a member of etcd has
// thousands of clients, and each stream needs much memory. All caches hear the answer to a question
// of one. All of them leave a dead stream for the next one, as soon as the first of them notices.
type stream struct {
	client *clientv3.Client
	number int64
}

// streams has the numbers of the streams in use. A process has few clients.
var streams sync.Map // of *clientv3.Client to *atomic.Int64

func streamOf(client *clientv3.Client) stream {
	number, _ := streams.LoadOrStore(client, &atomic.Int64{})
	return stream{client, number.(*atomic.Int64).Load()}
}

func (s stream) name() string { return fmt.Sprintf("%p.%d", s.client, s.number) }

// leave makes all users take another stream from now on, unless somebody did so before.
func (s stream) leave() {
	if number, ok := streams.Load(s.client); ok {
		number.(*atomic.Int64).CompareAndSwap(s.number, s.number+1)
	}
}

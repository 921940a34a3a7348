package etcdgate

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/state"
)

// All mirrors of an agent share one stream. etcd refuses a watch by an answer to that watch alone.
// A refused watch must not end the others, such as the watch of fences.
func TestARefusedWatchBesideOthers(t *testing.T) {
	d := newDoorway(t)
	client := d.as("agent:h1", d.urls[0])
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		for said := range client.Watch(ctx, state.FenceRoot, clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
			if said.Created {
				close(begun)
			}
			if said.Err() != nil {
				ended <- said.Err()
				return
			}
		}
	}()
	<-begun
	for said := range client.Watch(ctx, state.SecretRoot, clientv3.WithPrefix()) {
		if said.Canceled {
			break
		}
	}
	select {
	case err := <-ended:
		t.Errorf("the watch of fences ended, too: %v", err)
	case <-time.After(time.Second):
	}
}

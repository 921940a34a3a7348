package state_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/state"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/patience"
)

// A watch that is far behind gets what it missed in several answers, and each of them names the
// newest revision. The first of them must not be taken for all.
func TestAMirrorThatCatchesUpSaysHowFarItIs(t *testing.T) {
	client := hometest.New(t).Store.Client
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(time.Minute))
	defer cancel()
	first, err := client.Put(ctx, "/catch/up", "first")
	if err != nil {
		t.Fatal(err)
	}
	const missed = 2500
	newest := first.Header.Revision
	for newest < first.Header.Revision+missed {
		put, err := client.Put(ctx, "/catch/up", fmt.Sprint(newest))
		if err != nil {
			t.Fatal(err)
		}
		newest = put.Header.Revision
	}
	answers := 0
	for answer := range client.Watch(ctx, "/catch/up", clientv3.WithRev(first.Header.Revision+1)) {
		if err := answer.Err(); err != nil || len(answer.Events) == 0 {
			t.Fatalf("an answer with %d events: %v", len(answer.Events), err)
		}
		answers++
		last := answer.Events[len(answer.Events)-1].Kv.ModRevision
		if got := state.UpTo(answer); got != last {
			t.Errorf("after answer %d, which ends with revision %d, it is up to %d", answers, last, got)
		}
		if last == newest {
			break
		}
	}
	if answers < 2 {
		t.Errorf("%d answers: this tells nothing", answers)
	}
}

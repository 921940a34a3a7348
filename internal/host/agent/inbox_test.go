package agent

import (
	"context"
	"slices"
	"testing"
)

// Nobody who hands work over waits for a member that takes none, however much it is, and it
// is taken in order.
func TestAnInboxNeverBlocks(t *testing.T) {
	b := newInbox()
	var got []int
	for i := range 1000 {
		b.put(func(context.Context) { got = append(got, i) })
	}
	for range 1000 {
		<-b.ready
		b.take()(t.Context())
	}
	if len(got) != 1000 || !slices.IsSorted(got) || b.take() != nil {
		t.Errorf("%d taken, in order: %v", len(got), slices.IsSorted(got))
	}
	b.close()
	b.put(func(context.Context) { t.Error("work for nobody") })
	if b.take() != nil {
		t.Error("a closed inbox has work")
	}
	<-b.gone
}

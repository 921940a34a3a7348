package agent

import (
	"context"
	"sync"
)

// inbox is work for the goroutine of a member. Whoever hands something over never waits
// for it: a member may hang on its disk, and the other members of its host must not.
type inbox struct {
	mu     sync.Mutex
	work   []func(context.Context) // guarded by mu
	closed bool                    // guarded by mu
	ready  chan struct{}
	gone   chan struct{} // nobody takes work any more
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1), gone: make(chan struct{})} }

// put hands work over; it is dropped when nobody takes it any more.
func (b *inbox) put(work func(context.Context)) {
	b.mu.Lock()
	if !b.closed {
		b.work = append(b.work, work)
	}
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default: // it is awake already
	}
}

// take answers the oldest work, or nil.
func (b *inbox) take() func(context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.work) == 0 {
		return nil
	}
	first := b.work[0]
	b.work = b.work[1:]
	if len(b.work) > 0 {
		select {
		case b.ready <- struct{}{}:
		default:
		}
	}
	return first
}

// close is called once.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.work = true, nil
	close(b.gone)
}

package job

import (
	"context"
	"slices"
	"sync"
)

// queue lets so many in at a time, those that were asked for first before others.
type queue struct {
	mu      sync.Mutex
	free    int
	waiting []*ticket
}

// ticket is a place in a queue.
type ticket struct {
	queue *queue
	asked int64
	ready chan struct{} // closed when its holder is let in
	leave func()        // gives the place back, or up; once
}

// join takes a place at once. It is to be given back by leave.
func (q *queue) join(asked int64) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{queue: q, asked: asked, ready: make(chan struct{})}
	t.leave = sync.OnceFunc(t.left)
	q.waiting = append(q.waiting, t)
	slices.SortStableFunc(q.waiting, func(a, b *ticket) int { return int(a.asked - b.asked) })
	q.call()
	return t
}

// call lets in who is first. mu is held.
func (q *queue) call() {
	for q.free > 0 && len(q.waiting) > 0 {
		close(q.waiting[0].ready)
		q.waiting = q.waiting[1:]
		q.free--
	}
}

// wait waits to be let in. waits is called before that, if it is not so already.
func (t *ticket) wait(ctx context.Context, waits func()) error {
	select {
	case <-t.ready:
		return nil
	default:
		waits()
	}
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *ticket) left() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if at := slices.Index(t.queue.waiting, t); at >= 0 {
		t.queue.waiting = slices.Delete(t.queue.waiting, at, at+1)
		return
	}
	t.queue.free++
	t.queue.call()
}

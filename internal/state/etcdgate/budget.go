package etcdgate

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

var errBudget = errors.New("the caller asks for more than it may")

// limits bound what one caller may ask of etcd.
type limits struct {
	bytesEach, bytesAtOnce int // of what it writes; Each is a second, here and below
	underWay, requestsEach int // requests
	// answersEach and answersAtOnce bound the bytes of answers. etcd has all answers that are under
	// way in memory. reading bounds how many requests that read may be under way.
	answersEach, answersAtOnce, reading int
	// needs, ranges and gets bound what one request may name, and how much of that it may read.
	// value bounds the bytes that it may write under a key. watches and asked bound how many
	// watches one stream may have, and how many requests of any kind.
	needs, ranges, gets, value, watches, asked int
}

var (
	// ofDatabase is for all members of a database together. Patroni writes a few kilobytes a second
	// at most, and a member has a handful of requests under way. Package gate looks at four ranges
	// and eight keys at once, and has one watch at a time.
	ofDatabase = limits{
		bytesEach: 64 << 10, bytesAtOnce: 2 << 20, underWay: 200, requestsEach: 400,
		answersEach: 8 << 20, answersAtOnce: 32 << 20, reading: 8, needs: 64, ranges: 8, gets: 40, value: mostBody, watches: 16, asked: 64,
	}
	// ofHost is for an agent with hundreds of members that all fail over at once, or for an edge
	// that mirrors thousands of databases. It keeps a host that went mad from taking etcd away from
	// the others.
	ofHost = limits{
		bytesEach: 1 << 20, bytesAtOnce: 32 << 20, underWay: 2000, requestsEach: 4000,
		answersEach: 64 << 20, answersAtOnce: 512 << 20, reading: 16, needs: 2048, ranges: 8, gets: 16, value: 1 << 20, watches: 256, asked: 1 << 30,
	}
)

const (
	// warnEvery is the least pause between two refusals in the log, because the log is on a disk.
	warnEvery = 10 * time.Second
	// questionsEach is how many times a second the gate waits for the newest state on behalf of
	// callers who would otherwise be refused.
	questionsEach = 20
	// overhead is what any change costs besides its text, in bytes. leaseCost is what a lease
	// costs, which etcd keeps for its time to live.
	overhead  = 512
	leaseCost = 8 << 10
)

// budget keeps callers from filling etcd, which compacts its history every few minutes, and from
// taking all of its time.
type budget struct {
	limits
	mu     sync.Mutex
	scopes map[string]*account // guarded by mu
}

type account struct {
	bytes, requests, warnings, answers, questions *rate.Limiter
	underWay                                      int
	reading                                       chan struct{}
}

// of returns the account of a scope. The caller holds the lock. Certificates name scopes, so there
// are few.
func (b *budget) of(scope string) *account {
	if b.scopes == nil {
		b.scopes = map[string]*account{}
	}
	if b.scopes[scope] == nil {
		b.scopes[scope] = &account{
			bytes:     rate.NewLimiter(rate.Limit(b.bytesEach), b.bytesAtOnce),
			requests:  rate.NewLimiter(rate.Limit(b.requestsEach), 2*b.requestsEach),
			warnings:  rate.NewLimiter(rate.Every(warnEvery), 5),
			answers:   rate.NewLimiter(rate.Limit(b.answersEach), b.answersAtOnce),
			questions: rate.NewLimiter(questionsEach, 50),
			reading:   make(chan struct{}, b.reading),
		}
	}
	return b.scopes[scope]
}

// enter begins a request. leave ends it.
func (b *budget) enter(scope string) (leave func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.of(scope)
	if a.underWay >= b.underWay || !a.requests.Allow() {
		return nil, false
	}
	a.underWay++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		a.underWay--
	}, true
}

// read begins a request that reads, once there is room for it. done ends it, and is told how long
// the answer was: that is paid for afterwards.
func (b *budget) read(ctx context.Context, scope string) (done func(size int), err error) {
	b.mu.Lock()
	a := b.of(scope)
	b.mu.Unlock()
	select {
	case a.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, errBudget
	}
	if a.answers.Tokens() < 0 {
		<-a.reading
		return nil, errBudget
	}
	return func(size int) {
		a.answers.ReserveN(time.Now(), min(size, b.answersAtOnce))
		<-a.reading
	}, nil
}

// spend takes what a change of this size costs. It returns false if that is not there.
func (b *budget) spend(scope string, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(scope).bytes.AllowN(time.Now(), size+overhead)
}

// wait is spend for one message of a stream. It waits until there is room for the message.
func (b *budget) wait(ctx context.Context, scope string) error {
	b.mu.Lock()
	requests := b.of(scope).requests
	b.mu.Unlock()
	if requests.Wait(ctx) != nil {
		return errBudget
	}
	return nil
}

// asks reports whether another question about a refusal may be asked: see agent.may.
func (b *budget) asks(scope string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(scope).questions.Allow()
}

// warns reports whether a refusal may be written to the log.
func (b *budget) warns(scope string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(scope).warnings.Allow()
}

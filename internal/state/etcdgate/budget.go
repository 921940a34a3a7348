package etcdgate

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

var errBudget = errors.New("more is asked than may be")

// limits are what one caller may ask of etcd.
type limits struct {
	bytesEach, bytesAtOnce int // of what it writes; Each is a second, here and below
	underWay, requestsEach int // requests
	// answersEach and answersAtOnce are bytes of answers. etcd has all answers that are under
	// way in memory: reading is how many requests that read it may have.
	answersEach, answersAtOnce, reading int
	// needs, ranges and gets are what one request may name, and which of it is read, and value
	// how many bytes it may write under a key. watches and asked are how many watches one stream
	// may have, and requests of any kind.
	needs, ranges, gets, value, watches, asked int
}

var (
	// ofDatabase are for all members of a database together. Patroni writes a few kilobytes in
	// a second at most, and a member has a handful of requests under way. Package gate looks at
	// four ranges and eight keys at once, and has one watch at a time.
	ofDatabase = limits{
		bytesEach: 64 << 10, bytesAtOnce: 2 << 20, underWay: 200, requestsEach: 400,
		answersEach: 8 << 20, answersAtOnce: 32 << 20, reading: 8, needs: 64, ranges: 8, gets: 40, value: mostBody, watches: 16, asked: 64,
	}
	// ofHost are for an agent with hundreds of members, all of which fail over at once, or an
	// edge that mirrors thousands of databases: they keep one that went mad from taking etcd
	// away from the others.
	ofHost = limits{
		bytesEach: 1 << 20, bytesAtOnce: 32 << 20, underWay: 2000, requestsEach: 4000,
		answersEach: 64 << 20, answersAtOnce: 512 << 20, reading: 16, needs: 2048, ranges: 8, gets: 16, value: 1 << 20, watches: 256, asked: 1 << 30,
	}
)

const (
	// warnEvery is how often at most a refusal is written to the log: that is on a disk.
	warnEvery = 10 * time.Second
	// questionsEach is how often a second the newest state is waited for on behalf of somebody
	// who would be refused otherwise.
	questionsEach = 20
	// overhead is what any change costs beside its text, and leaseCost what a lease does,
	// which etcd keeps for its time.
	overhead  = 512
	leaseCost = 8 << 10
)

// budget keeps callers from filling etcd, which compacts its history each few minutes,
// and from taking all of its time.
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

// of is called with the lock held. Certificates name scopes, so that there are few.
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

// enter begins a request, which ends with leave.
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

// read begins a request that reads, when there is room for it. It ends with done, which is
// told how long the answer was: that is paid for afterwards.
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

// spend takes what a change of this size costs, if it is there.
func (b *budget) spend(scope string, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(scope).bytes.AllowN(time.Now(), size+overhead)
}

// wait is spend for one message of a stream, which waits until there is room for it.
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

package etcdgate

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

var errBudget = errors.New("the database writes too much")

// What one database may ask of etcd. Patroni writes a few kilobytes in a second at most,
// and a member has a handful of requests under way.
const (
	bytesEach   = 64 << 10 // a second
	bytesAtOnce = 2 << 20
	// mostUnderWay and requestsEach, a second, are for all members of a database together.
	mostUnderWay = 200
	requestsEach = 400
	// answersEach, a second, and answersAtOnce are bytes of answers. etcd has all answers that
	// are under way in memory: mostReading is how many requests that read it may have.
	answersEach   = 8 << 20
	answersAtOnce = 32 << 20
	mostReading   = 8
	// warnEvery is how often at most a refusal is written to the log: that is on a disk.
	warnEvery = 10 * time.Second
	// overhead is what any change costs beside its text, and leaseCost what a lease does,
	// which etcd keeps for its time.
	overhead  = 512
	leaseCost = 8 << 10
)

// budget keeps databases from filling etcd, which compacts its history each few minutes,
// and from taking all of its time.
type budget struct {
	mu     sync.Mutex
	scopes map[string]*account // guarded by mu
}

type account struct {
	bytes, requests, warnings, answers *rate.Limiter
	underWay                           int
	reading                            chan struct{}
}

// of is called with the lock held. Certificates name scopes, so that there are few.
func (b *budget) of(scope string) *account {
	if b.scopes == nil {
		b.scopes = map[string]*account{}
	}
	if b.scopes[scope] == nil {
		b.scopes[scope] = &account{
			bytes:    rate.NewLimiter(bytesEach, bytesAtOnce),
			requests: rate.NewLimiter(requestsEach, 2*requestsEach),
			warnings: rate.NewLimiter(rate.Every(warnEvery), 5),
			answers:  rate.NewLimiter(answersEach, answersAtOnce),
			reading:  make(chan struct{}, mostReading),
		}
	}
	return b.scopes[scope]
}

// enter begins a request, which ends with leave.
func (b *budget) enter(scope string) (leave func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.of(scope)
	if a.underWay >= mostUnderWay || !a.requests.Allow() {
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
		a.answers.ReserveN(time.Now(), min(size, answersAtOnce))
		<-a.reading
	}, nil
}

// spend takes what a change of this size costs, if it is there.
func (b *budget) spend(scope string, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(scope).bytes.AllowN(time.Now(), size+overhead)
}

// warns reports whether a refusal may be written to the log.
func (b *budget) warns(scope string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(scope).warnings.Allow()
}

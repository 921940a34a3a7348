package observe

import "time"

const (
	// slowSample is how long a sample may take before there are fewer of them.
	slowSample = 250 * time.Millisecond
	// slowest is how much longer than asked for the time between samples may become.
	slowest = 8
	// calm is how many quick samples in a row it takes to go faster again.
	calm = 30
)

// pace says how long to wait between samples. A server that answers late is busy enough.
type pace struct {
	asked time.Duration
	times int // how much longer than asked for; 0 is 1
	quick int // samples in a row that were quick
}

func (p *pace) every() time.Duration { return p.asked * time.Duration(max(1, p.times)) }

// took takes in how long a sample took.
func (p *pace) took(d time.Duration) {
	p.times = max(1, p.times)
	if d > slowSample {
		p.times, p.quick = min(slowest, p.times*2), 0
		return
	}
	p.quick++
	if p.quick >= calm && p.times > 1 {
		p.times, p.quick = p.times/2, 0
	}
}

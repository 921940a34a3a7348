package observe

import (
	"testing"
	"time"
)

func TestASlowServerIsAskedLess(t *testing.T) {
	p := pace{asked: time.Second}
	expect := func(what string, want time.Duration) {
		t.Helper()
		if got := p.every(); got != want {
			t.Errorf("%s: every %s, want %s", what, got, want)
		}
	}
	expect("at first", time.Second)
	p.took(slowSample)
	expect("after a sample that was just quick enough", time.Second)
	for _, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second} {
		p.took(slowSample + time.Millisecond)
		expect("after slow ones", want)
	}
	for range calm - 1 {
		p.took(time.Millisecond)
	}
	expect("before it was calm for long", 8*time.Second)
	p.took(time.Millisecond)
	expect("once it was calm", 4*time.Second)
	p.took(time.Second)
	expect("slow again", 8*time.Second)
	for range 3 * calm {
		p.took(time.Millisecond)
	}
	expect("at the end", time.Second)
	for range 10 * calm {
		p.took(time.Millisecond)
	}
	expect("never faster than asked", time.Second)
}

package watchdog

import (
	"testing"
	"time"
)

// Ages of a lease as they are seen once a second; none is a question that etcd did
// not answer, and lost a lease that has run out.
const (
	none = -1
	lost = -2
)

// ageing is n looks at a lease that nobody renews, from an age on.
func ageing(from, n int) (ages []int) {
	for i := range n {
		ages = append(ages, from+i)
	}
	return ages
}

func repeat(age, n int) (ages []int) {
	for range n {
		ages = append(ages, age)
	}
	return ages
}

func join(parts ...[]int) (all []int) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestLeaseJudge(t *testing.T) {
	well := repeat(1, 20)
	cases := []struct {
		name  string
		leads bool
		ages  []int
		after int // looks until the verdict; 0: none is made
	}{
		{"a primary that renews", true, repeat(1, 100), 0},
		{"a slow loop", true, repeat(7, 100), 0},
		{"one late renewal", true, join(well, []int{8, 9, 1}, well), 0},
		{"late again and again", true, join(well, []int{8, 9, 1, 8, 9, 1, 8, 9, 1}), 0},
		{"a frozen primary", true, join(well, ageing(2, 9)), 29},
		{"a frozen standby", false, join(well, ageing(2, 18), repeat(lost, 20)), 47},
		{"a standby that comes back in time", false, join(well, ageing(2, 18), repeat(lost, 5), well), 0},
		{"etcd is away", true, join(well, repeat(none, 100)), 0},
		{"etcd was away, and a healthy primary renews", true, join(well, repeat(none, 15), ageing(15, 4), well), 0},
		{"etcd was away, and it has hung meanwhile", true, join(well, repeat(none, 5), ageing(7, 20)), 34},
		{"etcd answers now and then", true, join(well, []int{8, none, 9, none, 10, none, 11, none, 12, none, 13}), 0},
		{"an agent that starts beside an old lease", true, ageing(9, 11), 9},
		{"no lease at all", false, repeat(lost, 30), 21},
	}
	for _, c := range cases {
		j := leaseJudge{patience: DefaultLeasePatience}
		now, after := time.Now(), 0
		for i, age := range c.ages {
			now = now.Add(LeaseEvery)
			if age == none {
				j.reset()
				continue
			}
			look := LeaseLook{at: now, Leads: c.leads, gone: age == lost, age: time.Duration(age) * time.Second}
			if j.hangs(look) && after == 0 {
				after = i + 1
			}
		}
		if after != c.after {
			t.Errorf("%s: the verdict is made after %d looks, want %d", c.name, after, c.after)
		}
	}
}

// A Patroni that was just started has not renewed the lease of the one before it.
func TestLeaseJudgeOfAStart(t *testing.T) {
	began := time.Now()
	j := leaseJudge{patience: DefaultLeasePatience, began: began}
	for second := range 20 {
		at := began.Add(time.Duration(second) * time.Second)
		look := LeaseLook{at: at, Leads: true, age: time.Duration(second) * time.Second}
		if hangs, want := j.hangs(look), second >= 15; hangs != want {
			t.Errorf("after %d s it hangs: %v", second, hangs)
		}
	}
}

// Looks far from each other are no evidence: the host may have slept, and Patroni
// with it.
func TestLeaseJudgeAfterASleep(t *testing.T) {
	j := leaseJudge{patience: DefaultLeasePatience}
	at := time.Now()
	for range 20 {
		at = at.Add(LeaseEvery)
		if j.hangs(LeaseLook{at: at, Leads: true, age: time.Second}) {
			t.Fatal("a healthy one hangs")
		}
	}
	for range 3 {
		at = at.Add(time.Minute)
		if j.hangs(LeaseLook{at: at, Leads: true, age: 15 * time.Second}) {
			t.Error("a verdict at the first look after a sleep")
		}
	}
}

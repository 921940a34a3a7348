package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// cutter cuts the standbys of this host off from lost primaries, so that no
// confirmation of theirs reaches one any more.
type cutter interface {
	name() string
	// sync makes exactly these cuts real, lifts all others, and tells of those that
	// hold, as soon as they do: also when it answers an error, of the rest, and also
	// after it has returned. It is idempotent, cheap when nothing changes, and does not
	// wait for a standby that is sick.
	sync(ctx context.Context, cuts []cut, made func(...cut)) error
}

// chooseCutter prefers the kernel: its cut does not depend on any process.
func chooseCutter(ctx context.Context, a *Host) cutter {
	k := &kernelCutter{table: cutTable(a.HomeID, a.Name)}
	if err := k.try(ctx); err != nil {
		a.Log.Info("no cut in the kernel, cutting WAL receivers", "reason", err)
		return &receiverCutter{agent: a}
	}
	return k
}

var notInTableName = regexp.MustCompile(`[^a-z0-9]`)

func cutTable(homeID, host string) string {
	return cutPrefix(homeID) + notInTableName.ReplaceAllString(host, "_")
}

// cutPrefix is what the tables of all hosts of a home begin with.
func cutPrefix(homeID string) string { return "howdah_" + homeID + "_fence_" }

// trySuffix makes the name of the table that is made to find out whether it can be.
const trySuffix = "_try"

// kernelCutter drops what comes from a lost primary and refuses what goes there,
// by rules of its own table.
type kernelCutter struct {
	table string
	clear bool // nothing of ours is in the kernel
}

func (k *kernelCutter) name() string { return "kernel" }

func (k *kernelCutter) try(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("not root")
	}
	// The last address of the loopback network and port 1: nobody's.
	if err := nft(ctx, cutRules(k.table+trySuffix, []string{"127.255.255.254:1"})); err != nil {
		return err
	}
	return nft(ctx, cutRules(k.table+trySuffix, nil))
}

func (k *kernelCutter) sync(ctx context.Context, cuts []cut, made func(...cut)) error {
	var addresses []string
	for _, c := range cuts {
		addresses = append(addresses, c.from.Postgres, c.from.Patroni)
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	if len(addresses) == 0 && k.clear {
		return nil
	}
	// A cut is set again at every look: someone else may have flushed the rules.
	if err := nft(ctx, cutRules(k.table, addresses)); err != nil {
		return err
	}
	k.clear = len(addresses) == 0
	made(cuts...)
	return nil
}

// cutRules is the whole table, replaced in one transaction. Resets pass: a
// process that died behind the cut is known to be dead. What goes to the primary
// is answered with a reset, which spares Patroni its time-outs.
func cutRules(table string, addresses []string) string {
	text := fmt.Sprintf("add table inet %[1]s\ndelete table inet %[1]s\n", table)
	if len(addresses) == 0 {
		return text
	}
	var elements []string
	for _, a := range addresses {
		host, port, err := net.SplitHostPort(a)
		if err != nil {
			continue
		}
		elements = append(elements, host+" . "+port)
	}
	return text + fmt.Sprintf(`table inet %s {
	set lost {
		type ipv4_addr . inet_service
		elements = { %s }
	}
	chain in {
		type filter hook input priority filter - 10
		ip saddr . tcp sport @lost tcp flags & rst == 0 drop
	}
	chain out {
		type filter hook output priority filter - 10
		ip daddr . tcp dport @lost reject with tcp reset
	}
}
`, table, strings.Join(elements, ", "))
}

// nftProgram is where Debian keeps it, unless it is on the PATH.
func nftProgram() string {
	if found, err := exec.LookPath("nft"); err == nil {
		return found
	}
	return "/usr/sbin/nft"
}

func nft(ctx context.Context, rules string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, nftProgram(), "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("set rules in the kernel: %w: %s", err, out)
	}
	return nil
}

// receiverCutter ends the WAL receiver of a standby and gives it no address to
// connect to again, for hosts that may not change the kernel's rules. Patroni
// may promote such a standby like any other.
type receiverCutter struct {
	agent *Host

	mu   sync.Mutex
	busy map[*runner]*dealing // guarded by mu
}

// dealing is a standby that is being dealt with, and what is wanted of it next.
type dealing struct {
	again bool
	next  []cut
}

func (c *receiverCutter) name() string { return "receiver" }

// sync deals with all standbys at once, and does not wait for them: one that is sick, or
// whose disk hangs, delays nobody else. A cut is made again at every look, because
// Patroni tries to undo it.
func (c *receiverCutter) sync(ctx context.Context, cuts []cut, made func(...cut)) error {
	for _, r := range c.agent.allRunners() {
		own := slices.DeleteFunc(slices.Clone(cuts), func(c cut) bool { return c.standby != r })
		if !c.begin(r, own) {
			continue
		}
		r.done.Go(func() {
			for more := true; more; own, more = c.next(r) {
				if err := c.deal(ctx, r, own, made); err != nil && ctx.Err() == nil {
					r.log.Error("cut off a lost primary", "error", err)
				}
			}
		})
	}
	return nil
}

// deal makes or lifts the cut of one standby, as the cases want that name it.
func (c *receiverCutter) deal(ctx context.Context, r *runner, own []cut, made func(...cut)) error {
	needed := slices.DeleteFunc(own, func(c cut) bool { return !r.mustBeCut(c.from) })
	if len(needed) == 0 && !r.isCut() {
		return nil
	}
	if err := r.cutReceiver(ctx, len(needed) > 0); err != nil {
		return err
	}
	made(needed...)
	return nil
}

// begin reports whether nobody deals with a standby; whoever does is told what is wanted.
func (c *receiverCutter) begin(r *runner, own []cut) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.busy[r]; d != nil {
		d.again, d.next = true, own
		return false
	}
	if c.busy == nil {
		c.busy = map[*runner]*dealing{}
	}
	c.busy[r] = &dealing{}
	return true
}

// next is what was wanted meanwhile.
func (c *receiverCutter) next(r *runner) (own []cut, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.busy[r]
	if !d.again {
		delete(c.busy, r)
		return nil, false
	}
	own, d.again, d.next = d.next, false, nil
	return own, true
}

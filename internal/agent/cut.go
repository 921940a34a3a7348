package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// sync makes exactly these cuts real, lifts all others, and answers those that
	// hold: also when it answers an error, of the rest. It is idempotent, and cheap
	// when nothing changes.
	sync(ctx context.Context, cuts []cut) ([]cut, error)
}

// chooseCutter prefers the kernel: its cut does not depend on any process.
func chooseCutter(ctx context.Context, a *Agent) cutter {
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

func (k *kernelCutter) sync(ctx context.Context, cuts []cut) ([]cut, error) {
	var addresses []string
	for _, c := range cuts {
		addresses = append(addresses, c.from.Postgres, c.from.Patroni)
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	if len(addresses) == 0 && k.clear {
		return nil, nil
	}
	// A cut is set again at every look: someone else may have flushed the rules.
	if err := nft(ctx, cutRules(k.table, addresses)); err != nil {
		return nil, err
	}
	k.clear = len(addresses) == 0
	return cuts, nil
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
type receiverCutter struct{ agent *Agent }

func (c *receiverCutter) name() string { return "receiver" }

// sync deals with all standbys at once: one that is sick keeps nobody waiting. A cut
// is made again at every look, because Patroni tries to undo it.
func (c *receiverCutter) sync(ctx context.Context, cuts []cut) ([]cut, error) {
	needed := slices.DeleteFunc(slices.Clone(cuts), func(c cut) bool { return !c.standby.mustBeCut(c.from) })
	var mu sync.Mutex
	failed := map[*runner]error{} // guarded by mu
	var all sync.WaitGroup
	for _, r := range c.agent.allRunners() {
		wanted := slices.ContainsFunc(needed, func(c cut) bool { return c.standby == r })
		if !wanted && !r.isCut() {
			continue
		}
		all.Go(func() {
			if err := r.cutReceiver(ctx, wanted); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[r] = err
			}
		})
	}
	all.Wait()
	made := slices.DeleteFunc(needed, func(c cut) bool { return failed[c.standby] != nil })
	return made, errors.Join(slices.Collect(maps.Values(failed))...)
}

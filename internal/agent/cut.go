package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"howdah/internal/fence"
)

// cutter cuts the standbys of this host off from lost primaries, so that no
// confirmation of theirs reaches one any more.
type cutter interface {
	name() string
	// sync makes exactly these cuts real and lifts all others. It is idempotent,
	// and cheap when nothing changes.
	sync(ctx context.Context, cuts []fence.Case) error
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
	return "howdah_" + homeID + "_fence_" + notInTableName.ReplaceAllString(host, "_")
}

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
	if err := nft(ctx, cutRules(k.table+"_try", []string{"127.255.255.254:1"})); err != nil {
		return err
	}
	return nft(ctx, cutRules(k.table+"_try", nil))
}

func (k *kernelCutter) sync(ctx context.Context, cuts []fence.Case) error {
	var addresses []string
	for _, c := range cuts {
		addresses = append(addresses, c.Postgres, c.Patroni)
	}
	slices.Sort(addresses)
	if len(addresses) == 0 && k.clear {
		return nil
	}
	// A cut is set again at every look: someone else may have flushed the rules.
	if err := nft(ctx, cutRules(k.table, addresses)); err != nil {
		return err
	}
	k.clear = len(addresses) == 0
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

func nft(ctx context.Context, rules string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	program := "/usr/sbin/nft"
	if found, err := exec.LookPath("nft"); err == nil {
		program = found
	}
	cmd := exec.CommandContext(ctx, program, "-f", "-")
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

func (c *receiverCutter) sync(ctx context.Context, cuts []fence.Case) error {
	var failed []error
	for _, r := range c.agent.allRunners() {
		database, _, _ := strings.Cut(r.id, ".")
		wanted := slices.ContainsFunc(cuts, func(cut fence.Case) bool { return cut.Leadership.Database == database })
		if wanted != r.isCut() {
			failed = append(failed, r.cutReceiver(ctx, wanted))
		}
	}
	return errors.Join(failed...)
}

// isCut reads the file that ALTER SYSTEM writes: it survives us.
func (r *runner) isCut() bool {
	text, err := os.ReadFile(filepath.Join(r.dataDir(), "postgresql.auto.conf"))
	return err == nil && strings.Contains(string(text), "primary_conninfo")
}

func (r *runner) cutReceiver(ctx context.Context, cut bool) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := r.agent.admin(ctx, r.target())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	sql := "ALTER SYSTEM RESET primary_conninfo"
	if cut {
		sql = "ALTER SYSTEM SET primary_conninfo = ''"
	}
	for _, statement := range []string{sql, "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("cut WAL receiver of %s: %w", r.id, err)
		}
	}
	for receiving := cut; receiving; {
		err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver)").Scan(&receiving)
		if err != nil {
			return fmt.Errorf("cut WAL receiver of %s: %w", r.id, err)
		}
		if receiving && !sleep(ctx, 5*time.Millisecond) {
			return fmt.Errorf("WAL receiver of %s still runs: %w", r.id, fence.ErrRefused)
		}
	}
	return nil
}

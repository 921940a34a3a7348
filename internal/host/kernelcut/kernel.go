// Package kernelcut cuts a host off from others in its own kernel. Nothing that a lost primary says
// arrives any more, whatever becomes of the processes here. The rules of a host are a table of its
// own, which is replaced in one transaction. Rules of others are never touched.
package kernelcut

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
	"time"
)

// Rules drop what comes from some addresses of this network, and refuse what goes there. They have
// a table of their own in the kernel.
type Rules struct {
	Table string
	clear bool // nothing of ours is in the kernel
}

// Try returns nil if rules can be set here.
func (k *Rules) Try(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("not root")
	}
	// The last address of the loopback network and port 1 belong to nobody.
	if err := nft(ctx, cutRules(k.Table+trySuffix, []string{"127.255.255.254:1"})); err != nil {
		return err
	}
	return nft(ctx, cutRules(k.Table+trySuffix, nil))
}

// Hold cuts off exactly these addresses, given as host:port, and reports whether it had to do
// anything for that. If there are any addresses, it writes the rules at every call, because someone
// else may have flushed them.
func (k *Rules) Hold(ctx context.Context, addresses []string) (changed bool, err error) {
	addresses = slices.Clone(addresses)
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	if len(addresses) == 0 && k.clear {
		return false, nil
	}
	if err := nft(ctx, cutRules(k.Table, addresses)); err != nil {
		return false, err
	}
	k.clear = len(addresses) == 0
	return true, nil
}

// RemoveHost removes the cut of one host from this machine's kernel.
func RemoveHost(ctx context.Context, homeID, host string) error {
	table := Table(homeID, host)
	return remove(ctx, func(name string) bool { return name == table || name == table+trySuffix })
}

var notInTableName = regexp.MustCompile(`[^a-z0-9]`)

// Table returns the name of a host's table.
func Table(homeID, host string) string {
	return cutPrefix(homeID) + notInTableName.ReplaceAllString(host, "_")
}

// cutPrefix returns the beginning of the names of all hosts' tables of a home.
func cutPrefix(homeID string) string { return "howdah_" + homeID + "_fence_" }

// LabTable returns the name of the table by which the lab cuts a host of a home off on purpose.
func LabTable(homeID string) string { return "howdah_lab_" + homeID }

// Apply has the kernel take rules, all of them or none.
func Apply(ctx context.Context, rules string) error { return nft(ctx, rules) }

// Remove removes a table, if it is there.
func Remove(ctx context.Context, table string) error { return nft(ctx, cutRules(table, nil)) }

// trySuffix makes the name of the table that Try makes.
const trySuffix = "_try"

// cutRules returns the whole table, which is replaced in one transaction. Resets pass, so that a
// process that died behind the cut is known to be dead. What goes to the primary is answered with a
// reset, which spares Patroni its time-outs.
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

// nftProgram returns the nft on the PATH, or else the path where Debian keeps it.
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

// List returns what nft lists of the kernel's rules; words are its arguments.
func List(ctx context.Context, words ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, nftProgram(), words...).Output()
	if err != nil {
		return nil, fmt.Errorf("list rules of the kernel: %w", err)
	}
	return out, nil
}

// Tables lists the names of all tables that rules for both kinds of IP are in.
func Tables(ctx context.Context) (names []string, err error) {
	out, err := List(ctx, "list", "tables", "inet")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) == 3 { // table inet NAME
			names = append(names, words[2])
		}
	}
	return names, nil
}

// RemoveHome removes the cuts of all hosts of a home from this machine's kernel, also those of
// hosts that no longer exist, and what a lab left that was killed. No database of the home may run here.
func RemoveHome(ctx context.Context, homeID string) error {
	return remove(ctx, func(name string) bool {
		return strings.HasPrefix(name, cutPrefix(homeID)) || name == LabTable(homeID)
	})
}

// remove removes tables by name. A user who may not look has made none.
func remove(ctx context.Context, which func(name string) bool) error {
	if os.Geteuid() != 0 {
		return nil
	}
	names, err := Tables(ctx)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	var rules strings.Builder
	for _, name := range names {
		if which(name) {
			rules.WriteString(cutRules(name, nil))
		}
	}
	if rules.Len() == 0 {
		return nil
	}
	return nft(ctx, rules.String())
}

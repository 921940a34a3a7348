package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/host/kernelcut"
	"howdah/internal/host/proc"
	"howdah/internal/host/proc/cgroup"
	"howdah/internal/host/proc/table"
)

// apart is a host that is to be cut off from everything else. On one machine all hosts speak by the loopback
// network, and what a host's processes send has no address of the host's own. So its packets are known by
// the control groups of the sockets, and, where the kernel answers for a socket, by the host's address.
type apart struct {
	table   string
	address netip.Addr // of the host; no other one has it
	groups  []group    // those of its members, and of its agent
	// sockets are those that the agent had before it was in its group.
	sockets []connection
	// over is which packets are dropped, in the kernel's words: "" for all.
	over string
}

// slowly drops what is more than a bad line carries. Programs send it again, later. A packet on the loopback
// network may have 64 KiB, so that many may come at once.
const slowly = "limit rate over 64 kbytes/second burst 128 kbytes "

// fromHost is the bit of a packet's mark that says that the host has sent it.
const fromHost = "0x08000000"

// Names of the counters of packets that were dropped.
const (
	sentCounter = "sent"
	toldCounter = "received"
)

// rules returns the whole table. The first chain marks what the host sends, because on the other side of the
// loopback network nobody knows the sender. What the host says to itself passes.
func (a apart) rules() string {
	var b strings.Builder
	mark := "meta mark set meta mark | " + fromHost
	fmt.Fprintf(&b, "add table inet %[1]s\ndelete table inet %[1]s\ntable inet %[1]s {\n", a.table)
	fmt.Fprintf(&b, "\tcounter %s { }\n\tcounter %s { }\n", sentCounter, toldCounter)
	// Each in a chain of its own: a limit counts what comes to it.
	for _, name := range []string{sentCounter, toldCounter} {
		fmt.Fprintf(&b, "\tchain %[1]s {\n\t\t%[2]scounter name %[1]s drop\n\t}\n", name, a.over)
	}
	fmt.Fprintf(&b, "\tset sockets {\n\t\ttype ipv4_addr . inet_service . ipv4_addr . inet_service\n%s\t}\n", elements(a.sockets))
	b.WriteString("\tchain sends {\n\t\ttype filter hook output priority filter - 5\n")
	for _, own := range append(a.ends("ip saddr . tcp sport . ip daddr . tcp dport"), "ip saddr "+a.address.String()) {
		fmt.Fprintf(&b, "\t\t%s %s\n", own, mark)
	}
	fmt.Fprintf(&b, "\t\toifname != \"lo\" meta mark & %[1]s == %[1]s goto sent\n\t}\n", fromHost)
	receives := append(a.ends("ip daddr . tcp dport . ip saddr . tcp sport"), "ip daddr "+a.address.String())
	b.WriteString("\tchain from_host {\n")
	for _, own := range receives {
		fmt.Fprintf(&b, "\t\t%s accept\n", own)
	}
	b.WriteString("\t\tgoto sent\n\t}\n")
	b.WriteString("\tchain receives {\n\t\ttype filter hook input priority filter - 5\n")
	fmt.Fprintf(&b, "\t\tmeta mark & %[1]s == %[1]s goto from_host\n", fromHost)
	for _, own := range receives {
		fmt.Fprintf(&b, "\t\t%s goto received\n", own)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// ends returns the conditions for the host's sockets. tuple says which end of a packet is meant.
func (a apart) ends(tuple string) []string {
	all := []string{tuple + " @sockets"}
	for _, g := range a.groups {
		all = append(all, fmt.Sprintf("socket cgroupv2 level %d %q", g.level, g.name))
	}
	return all
}

func elements(all []connection) string {
	if len(all) == 0 {
		return ""
	}
	words := make([]string, len(all))
	for n, c := range all {
		words[n] = fmt.Sprintf("%s . %d . %s . %d", c.local.Addr(), c.local.Port(), c.remote.Addr(), c.remote.Port())
	}
	return "\t\telements = { " + strings.Join(words, ", ") + " }\n"
}

// cut cuts the primary's host off from everything else: the control plane, etcd, other hosts, and clients.
func (g *Ground) cut(ctx context.Context) (*Made, error) {
	return g.part(ctx, "partition", "", func(host string, sent, received int64) (string, bool) {
		return fmt.Sprintf("%s is cut off: the kernel has dropped %d packets from it and %d to it", host, sent, received), sent > 0 && received > 0
	})
}

// slow lets 64 KB a second through to the primary's host, and as much from it.
func (g *Ground) slow(ctx context.Context) (*Made, error) {
	return g.part(ctx, "slow-network", slowly, func(host string, sent, received int64) (string, bool) {
		return fmt.Sprintf("%s has 64 KB a second each way: the kernel has dropped %d packets from it and %d to it that were more", host, sent, received), sent+received > 0
	})
}

// part drops packets to and from the primary's host. tells says what the counters prove, and whether they do.
func (g *Ground) part(ctx context.Context, kind, over string, tells func(host string, sent, received int64) (string, bool)) (*Made, error) {
	m, err := g.primary(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.sparesOthers(ctx, kind, m.host); err != nil {
		return nil, err
	}
	a := apart{table: kernelcut.LabTable(g.Home.ID), over: over}
	if a.address, err = g.addressOf(ctx, m.host); err != nil {
		return nil, err
	}
	postmaster, err := m.postmaster()
	if err != nil {
		return nil, err
	}
	members, err := groupOf(postmaster.PID, "howdah-"+g.Home.ID+"-"+m.host)
	if err != nil {
		return nil, err
	}
	agent, err := g.agent(m.host)
	if err != nil {
		return nil, err
	}
	moved, err := moveOf(agent, "howdah-lab-"+g.Home.ID+"-"+m.host)
	if err != nil {
		return nil, err
	}
	a.groups = []group{members, moved.to}
	made, err := g.begin(Record{Kind: kind, Table: a.table, Moved: &moved.Moved})
	if err != nil {
		return made, err
	}
	if err := moved.do(); err != nil {
		return made, err
	}
	if a.sockets, err = connections(agent.PID); err != nil {
		return made, err
	}
	if err := kernelcut.Apply(ctx, a.rules()); err != nil {
		return made, err
	}
	made.healed = func() error { return gone(context.WithoutCancel(ctx), a.table) }
	err = eventually(ctx, func() error {
		sent, received, err := dropped(ctx, a.table)
		proof, proved := tells(m.host, sent, received)
		if err == nil && !proved {
			err = errPass
		}
		made.Proof = proof
		return err
	})
	return made, err
}

var (
	errPass   = errors.New("its packets pass")
	errTable  = errors.New("the rules are in the kernel still")
	errShared = errors.New("others have the same address, and would be cut off, too")
)

// addressOf returns the address of a host, which is its own on the loopback network.
func (g *Ground) addressOf(ctx context.Context, host string) (netip.Addr, error) {
	var status admin.Status
	if err := g.API.Admin(ctx, admin.VerbStatus, admin.Nothing{}, &status); err != nil {
		return netip.Addr{}, err
	}
	return chooseAddress(status.Hosts, host)
}

// common is the part of the loopback network that everything on a machine uses.
var common = netip.MustParsePrefix("127.0.0.0/16")

func chooseAddress(hosts []admin.Host, host string) (netip.Addr, error) {
	for n, h := range hosts {
		if h.Name != host {
			continue
		}
		address, err := netip.ParseAddr(h.Address)
		shared := slices.ContainsFunc(hosts, func(other admin.Host) bool { return other.Name != host && other.Address == hosts[n].Address })
		if err != nil || !address.Is4() || !address.IsLoopback() || common.Contains(address) || shared {
			return address, fmt.Errorf("%w: %w: %s has %s", ErrImpossible, errShared, host, h.Address)
		}
		return address, nil
	}
	return netip.Addr{}, fmt.Errorf("%w: nobody knows the address of %s", ErrImpossible, host)
}

// canCut refuses a partition, and a slow network, where the kernel does not let us tell packets by control
// groups, or drop them.
func (g *Ground) canCut(kind string) error {
	switch {
	case g.Home == nil:
		return fmt.Errorf("%w: %s: the Howdah is not on this machine", ErrImpossible, kind)
	case os.Geteuid() != 0:
		return fmt.Errorf("%w: %s: all hosts of this home are on one machine, and speak by its loopback network. To drop the packets of one of them takes root", ErrImpossible, kind)
	}
	ctx, cancel := context.WithTimeout(context.Background(), proofWithin)
	defer cancel()
	if err := tryCut(ctx, kernelcut.LabTable(g.Home.ID)+"_try", fmt.Sprintf("howdah-lab-%s-try-%d", g.Home.ID, os.Getpid())); err != nil {
		return fmt.Errorf("%w: %s: the kernel cannot drop the packets of one control group: %w", ErrImpossible, kind, err)
	}
	return nil
}

// tryCut has the kernel take rules that concern nobody, and removes them.
func tryCut(ctx context.Context, name, dir string) (err error) {
	own, err := groupAt(os.Getpid(), dir)
	if err != nil {
		return err
	}
	if err := cgroup.Make(own.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cgroup.Remove(own.dir)) }()
	a := apart{table: name, address: netip.MustParseAddr("127.255.255.254"), groups: []group{own.group}, over: slowly}
	return errors.Join(kernelcut.Apply(ctx, a.rules()), kernelcut.Remove(ctx, name))
}

// dropped returns how many packets the rules have dropped.
func dropped(ctx context.Context, table string) (sent, received int64, err error) {
	out, err := kernelcut.List(ctx, "-j", "list", "counters", "table", "inet", table)
	if err != nil {
		return 0, 0, err
	}
	return readCounters(out)
}

func readCounters(text []byte) (sent, received int64, err error) {
	var list struct {
		All []struct {
			Counter struct {
				Name    string `json:"name"`
				Packets int64  `json:"packets"`
			} `json:"counter"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return 0, 0, fmt.Errorf("count the packets that were dropped: %w", err)
	}
	for _, one := range list.All {
		switch one.Counter.Name {
		case sentCounter:
			sent = one.Counter.Packets
		case toldCounter:
			received = one.Counter.Packets
		}
	}
	return sent, received, nil
}

// gone returns an error while the rules are there.
func gone(ctx context.Context, name string) error {
	names, err := kernelcut.Tables(ctx)
	if err == nil && slices.Contains(names, name) {
		err = errTable
	}
	return err
}

// Moved is a process that is in a control group of the lab's. All that is there goes back when the fault is
// undone.
type Moved struct {
	Group string `json:"group"` // the lab's
	Back  string `json:"back"`  // where the process was
}

// move moves a process.
type move struct {
	Moved
	process proc.Process
	to      group
}

// moveOf finds out how a process gets into a group of this name, beside where it is.
func moveOf(p proc.Process, name string) (move, error) {
	own, err := groupAt(p.PID, name)
	if err != nil {
		return move{}, err
	}
	return move{Moved: Moved{Group: own.dir, Back: own.current}, process: p, to: own.group}, nil
}

func (m move) do() error {
	if err := cgroup.Make(m.Group); err != nil {
		return err
	}
	if _, err := table.System.Live(m.process); err != nil {
		return fmt.Errorf("move process %s: %w", m.process, err)
	}
	return cgroup.Add(m.Group, m.process.PID)
}

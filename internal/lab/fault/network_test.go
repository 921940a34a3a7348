package fault

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/admin"
	"howdah/internal/host/kernelcut"
	"howdah/internal/host/proc"
	"howdah/internal/host/proc/table"
	"howdah/internal/identity/home"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

func TestRulesOfAPartition(t *testing.T) {
	t.Parallel()
	a := apart{
		table: "howdah_lab_1", address: netip.MustParseAddr("127.9.1.2"), groups: []group{{"unified/howdah-1-zone-b", 1}},
		sockets: []connection{{netip.MustParseAddrPort("127.0.0.1:4000"), netip.MustParseAddrPort("127.9.0.1:7443")}},
	}
	const want = `add table inet howdah_lab_1
delete table inet howdah_lab_1
table inet howdah_lab_1 {
	counter sent { }
	counter received { }
	chain sent {
		OVERcounter name sent drop
	}
	chain received {
		OVERcounter name received drop
	}
	set sockets {
		type ipv4_addr . inet_service . ipv4_addr . inet_service
		elements = { 127.0.0.1 . 4000 . 127.9.0.1 . 7443 }
	}
	chain sends {
		type filter hook output priority filter - 5
		ip saddr . tcp sport . ip daddr . tcp dport @sockets meta mark set meta mark | 0x08000000
		socket cgroupv2 level 1 "unified/howdah-1-zone-b" meta mark set meta mark | 0x08000000
		ip saddr 127.9.1.2 meta mark set meta mark | 0x08000000
		oifname != "lo" meta mark & 0x08000000 == 0x08000000 goto sent
	}
	chain from_host {
		ip daddr . tcp dport . ip saddr . tcp sport @sockets accept
		socket cgroupv2 level 1 "unified/howdah-1-zone-b" accept
		ip daddr 127.9.1.2 accept
		goto sent
	}
	chain receives {
		type filter hook input priority filter - 5
		meta mark & 0x08000000 == 0x08000000 goto from_host
		ip daddr . tcp dport . ip saddr . tcp sport @sockets goto received
		socket cgroupv2 level 1 "unified/howdah-1-zone-b" goto received
		ip daddr 127.9.1.2 goto received
	}
}
`
	for _, over := range []string{"", slowly} {
		a.over = over
		if diff := cmp.Diff(strings.ReplaceAll(want, "OVER", over), a.rules()); diff != "" {
			t.Errorf("%q: %s", over, diff)
		}
	}
}

func TestGroupsAsNftNamesThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mount, own string
		want       group
	}{
		{"/sys/fs/cgroup/unified", "/howdah-1-zone-a/m.m/db", group{"unified/howdah-1-zone-a", 1}},
		{"/sys/fs/cgroup", "/howdah-1-zone-a/m.m/ctl", group{"howdah-1-zone-a", 1}},
		{"/sys/fs/cgroup", "/docker/7/howdah-1-zone-a/m.m/ctl", group{"docker/7/howdah-1-zone-a", 3}},
		{"/sys/fs/cgroup", "/howdah-1-zone-ab/m.m/ctl", group{}},
		{"/sys/fs/cgroup", "/", group{}},
	} {
		if got, ok := chooseLevel(c.mount, c.own, "howdah-1-zone-a"); got != c.want || ok != (c.want.level > 0) {
			t.Errorf("%s of %s: %+v, %v", c.own, c.mount, got, ok)
		}
	}
}

// A host whose address others have is not cut off: they would be, too.
func TestAddressesOfHosts(t *testing.T) {
	t.Parallel()
	hosts := func(address, other string) []admin.Host {
		return []admin.Host{{Name: "zone-a", Address: address}, {Name: "zone-b", Address: other}}
	}
	for name, c := range map[string]struct {
		hosts []admin.Host
		ok    bool
	}{
		"of its own":         {hosts("127.9.1.1", "127.9.1.2"), true},
		"of another host":    {hosts("127.9.1.1", "127.9.1.1"), false},
		"of everything":      {hosts("127.0.0.1", "127.9.1.2"), false},
		"of the machine":     {hosts("10.0.0.1", "10.0.0.2"), false},
		"of version 6":       {hosts("::1", "127.9.1.2"), false},
		"none":               {hosts("", "127.9.1.2"), false},
		"of an unknown host": {hosts("127.9.1.1", "127.9.1.2")[1:], false},
	} {
		if _, err := chooseAddress(c.hosts, "zone-a"); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrImpossible) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSocketsOfAProcess(t *testing.T) {
	t.Parallel()
	const text = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0FA0 0100097F:1D13 01 00000000:00000000 00:00000000 00000000     0        0 77 1 0 20 4 24 10 -1
   1: 0100007F:0FA1 0100097F:1D13 01 00000000:00000000 00:00000000 00000000     0        0 78 1 0 20 4 24 10 -1
   2: 0101097F:1D14 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 79 1 0 20 4 24 10 -1
   3: 0000000000000000FFFF00000100007F:0FA2 0000000000000000FFFF00000100097F:1D13 01 0:0 0:0 0 0 0 80 1 0
   4: 00000000000000000000000001000000:0FA2 00000000000000000000000001000000:1D13 01 0:0 0:0 0 0 0 81 1 0
   5: nonsense nonsense 01 0:0 0:0 0 0 0 82 1 0
`
	var got []string
	for _, c := range parseSockets(text, map[string]bool{"77": true, "79": true, "80": true, "81": true, "82": true}) {
		got = append(got, c.local.String()+" "+c.remote.String())
	}
	if diff := cmp.Diff([]string{"127.0.0.1:4000 127.9.0.1:7443", "127.0.0.1:4002 127.9.0.1:7443"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCounters(t *testing.T) {
	t.Parallel()
	const text = `{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"counter": {"family": "inet", "name": "sent", "table": "x", "handle": 1, "packets": 7, "bytes": 1}},
		{"counter": {"family": "inet", "name": "received", "table": "x", "handle": 2, "packets": 9, "bytes": 1}}]}`
	if sent, received, err := readCounters([]byte(text)); err != nil || sent != 7 || received != 9 {
		t.Errorf("%d, %d, %v", sent, received, err)
	}
	if _, _, err := readCounters([]byte("none")); err == nil {
		t.Error("nonsense was read")
	}
}

// talker is a process that connects, and says "old" by a connection that it had before, and "new" by one
// that it makes then, each time that it is told to.
func talker(t *testing.T, listener net.Listener) (_ proc.Process, say io.Writer, old net.Conn) {
	t.Helper()
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const script = `exec 3<>"/dev/tcp/$0/$1"; while read -r word; do echo "$word" >&3; (exec 4<>"/dev/tcp/$0/$1"; echo new >&4) & done`
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script, host, port)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if old, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { old.Close() })
	p, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p, in, old
}

// caught is a talker whose packets the kernel knows, and drops: all of them, or those over a limit.
type caught struct {
	ground   *Ground
	table    string
	moved    move
	listener net.Listener
	say      io.Writer
	old      net.Conn
}

func catch(t *testing.T, kind, over string) (c caught) {
	t.Helper()
	testkit.NeedRoot(t)
	testkit.NeedProgram(t, "nft")
	id := fmt.Sprintf("%08x", rand.Uint32())
	c.ground, c.table = &Ground{Home: &home.Home{Config: home.Config{ID: id}}, Dir: t.TempDir()}, kernelcut.LabTable(id)
	if err := c.ground.canCut(kind); err != nil {
		t.Skipf("needs rules in the kernel: %v", err)
	}
	var err error
	if c.listener, err = net.Listen("tcp", fmt.Sprintf("127.%d.%d.1:0", 1+rand.IntN(250), rand.IntN(250))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.listener.Close() })
	var p proc.Process
	p, c.say, c.old = talker(t, c.listener)
	if c.moved, err = moveOf(p, "howdah-lab-"+id+"-test"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ground.begin(Record{Kind: kind, Table: c.table, Moved: &c.moved.Moved}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Heal(context.Background(), c.ground.Dir) })
	if err := c.moved.do(); err != nil {
		t.Fatal(err)
	}
	a := apart{table: c.table, address: netip.MustParseAddr("127.255.255.253"), groups: []group{c.moved.to}, over: over}
	if a.sockets, err = connections(p.PID); err != nil || len(a.sockets) != 1 {
		t.Fatalf("%v, %v", a.sockets, err)
	}
	if err := kernelcut.Apply(t.Context(), a.rules()); err != nil {
		t.Fatal(err)
	}
	return c
}

// A process that is cut off is not heard by connections that it had, nor by new ones, and hears nothing.
// Others go on. A lab that was killed leaves a record, by which all of it is undone.
func TestAProcessIsCutOff(t *testing.T) {
	c := catch(t, "partition", "")
	g, old, listener := c.ground, c.old, c.listener
	fmt.Fprintln(c.say, "old")
	fmt.Fprintln(old, "heard")
	testkit.Eventually(t, patience.For(10*time.Second), func() error {
		sent, received, err := dropped(t.Context(), c.table)
		if err == nil && (sent < 2 || received < 1) { // a word, and the beginning of a connection
			err = fmt.Errorf("%w: %d, %d", errPass, sent, received)
		}
		return err
	})
	other, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatalf("others are cut off: %v", err)
	}
	defer other.Close()
	if first, err := listener.Accept(); err != nil || first.RemoteAddr().String() != other.LocalAddr().String() {
		t.Errorf("the first one that came is %v, %v", first, err)
	}
	if err := Heal(t.Context(), g.Dir); err != nil {
		t.Fatal(err)
	}
	// What was on its way arrives now, by both connections.
	if word, err := bufio.NewReader(old).ReadString('\n'); err != nil || word != "old\n" {
		t.Errorf("%q, %v", word, err)
	}
	fresh, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if word, err := bufio.NewReader(fresh).ReadString('\n'); err != nil || word != "new\n" {
		t.Errorf("%q, %v", word, err)
	}
	if err := gone(t.Context(), c.table); err != nil || recorded(g.Dir) {
		t.Errorf("what is left: %v, a record %v", err, recorded(g.Dir))
	}
	if _, err := os.Stat(c.moved.Group); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a control group is left: %v", err)
	}
	if now, err := groupAt(c.moved.process.PID, "any"); err != nil || now.current != c.moved.Back {
		t.Errorf("it is in %s, and was in %s: %v", now.current, c.moved.Back, err)
	}
	if err := Heal(t.Context(), g.Dir); err != nil {
		t.Errorf("once more: %v", err)
	}
}

// A process with a slow network gets all through, no faster than that.
func TestAProcessWithASlowNetwork(t *testing.T) {
	c := catch(t, "slow-network", slowly)
	const size = 400 << 10
	began := time.Now()
	go fmt.Fprintln(c.say, strings.Repeat("x", size-1))
	_ = c.old.SetReadDeadline(began.Add(patience.For(2 * time.Minute)))
	if _, err := io.ReadFull(c.old, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	// What comes at once is 128 KiB, and what comes after it takes four seconds.
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("%d KiB came within %s", size>>10, took)
	}
	if sent, _, err := dropped(t.Context(), c.table); err != nil || sent == 0 {
		t.Errorf("%d packets were dropped, %v", sent, err)
	}
	if err := Heal(t.Context(), c.ground.Dir); err != nil {
		t.Fatal(err)
	}
	if err := gone(t.Context(), c.table); err != nil {
		t.Error(err)
	}
}

// After a new start of the machine neither rules nor control groups of the record are there, and what has
// their names is somebody else's.
func TestRulesOfAnotherEraAreLeft(t *testing.T) {
	t.Parallel()
	g := &Ground{Dir: t.TempDir()}
	group := t.TempDir()
	if err := (Record{Kind: "partition", Era: "another", Moved: &Moved{Group: group, Back: t.TempDir()}}).write(g.Dir); err != nil {
		t.Fatal(err)
	}
	if err := Heal(t.Context(), g.Dir); err != nil || recorded(g.Dir) {
		t.Errorf("%v, a record %v", err, recorded(g.Dir))
	}
	if _, err := os.Stat(group); err != nil {
		t.Error(err)
	}
	if _, err := table.System.Era(); err != nil {
		t.Error(err)
	}
}

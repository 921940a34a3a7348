package fault

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit/rig"
)

// Somebody got out of a database into its operating-system user, and has a shell as that user. It
// reads, writes, connects to and signals nothing of another database, nor of the host.
func TestAShellAsOneDatabasesUserGetsToNoOther(t *testing.T) {
	s := begin(t, nil)
	own, other := s.leader(s.given("orders", false)), s.leader(s.given("billing", false))
	shell := s.shellAs(own)

	pid := func(m rig.Member) int {
		n, err := postgres.Postmaster(m.DataDir())
		s.must(err, "find the postmaster")
		return n
	}
	attempts := func(m rig.Member) map[string]string {
		dir, process, sockets := filepath.Dir(m.DataDir()), pid(m), m.SocketDir()
		return map[string]string{
			"list its directory":        "ls " + dir,
			"list its data":             "ls " + m.DataDir(),
			"read its data":             "cat " + m.DataDir() + "/PG_VERSION",
			"read its control file":     "cat " + m.DataDir() + "/global/pg_control",
			"read its key":              "cat " + dir + "/tls/tls.key",
			"read its configuration":    "cat " + dir + "/patroni.json",
			"read its log":              "ls " + dir + "/log",
			"write into its directory":  "touch " + dir + "/x",
			"write into its data":       "touch " + m.DataDir() + "/x",
			"list its socket":           "ls -a " + sockets,
			"write beside its socket":   "touch " + sockets + "/x",
			"log in as the platform":    fmt.Sprintf("psql -X -c 'SELECT 1' 'host=%s port=%d user=rdsadmin dbname=rdsadmin'", sockets, m.Port),
			"signal its postmaster":     fmt.Sprintf("kill -0 %d", process),
			"read its environment":      fmt.Sprintf("cat /proc/%d/environ", process),
			"read its memory":           fmt.Sprintf("cat /proc/%d/maps", process),
			"enter its files":           fmt.Sprintf("ls /proc/%d/cwd/", process),
			"list its descriptors":      fmt.Sprintf("ls /proc/%d/fd", process),
			"change its priority":       fmt.Sprintf("renice -n 19 -p %d", process),
			"take its part of the disk": fmt.Sprintf("dd if=/dev/zero of=%s/big bs=1M count=1", m.DataDir()),
		}
	}
	for what, command := range attempts(own) {
		if out, err := shell(command); err != nil && what != "change its priority" {
			t.Errorf("its own, %s: %v: %s", what, err, out)
		}
	}
	host := s.rig.HostDir(own.ZoneLetter())
	all := attempts(other)
	for what, path := range map[string]string{
		"what members were told": host + "/assigned", "the host's processes": host + "/proc", "the home's keys": s.rig.Home.Dir + "/pki",
		"the state": s.rig.Home.Dir + "/etcd", "all members": host + "/members", "prepared data": host + "/spares", "the trash": host + "/trash",
	} {
		all["list "+what], all["write into "+what] = "ls "+path, "touch "+path+"/x"
	}
	for what, command := range all {
		out, err := shell(command)
		if err == nil || !strings.Contains(out, "ermission denied") && !strings.Contains(out, "not permitted") {
			t.Errorf("%s: %v: %s", what, err, out)
		}
	}
	s.noRightsBeyond(own)
	s.must(s.exec("billing", "CREATE TABLE untouched ()"), "write in the other database")
}

// noRightsBeyond checks that a program which would give away its owner's rights gives the member
// none.
func (s *story) noRightsBeyond(m rig.Member) {
	s.Helper()
	pid, err := postgres.Postmaster(m.DataDir())
	s.must(err, "find the postmaster")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	s.must(err, "look at the postmaster")
	if !strings.Contains(string(text), "NoNewPrivs:\t1\n") {
		s.Errorf("the postmaster may take the rights of a program's owner:\n%s", text)
	}
}

// shellAs runs shell commands as a member's operating-system user.
func (s *story) shellAs(m rig.Member) func(command string) (string, error) {
	s.Helper()
	info, err := os.Stat(m.DataDir())
	s.must(err, "find the member's user")
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 {
		s.Fatalf("%s belongs to root", m.DataDir())
	}
	return func(command string) (string, error) {
		cmd := exec.Command("timeout", "10", "sh", "-c", command)
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// Another database gets what a database had only when nothing of that one is left. Deleted members
// leave no user behind that a process runs as.
func TestADeletedDatabasesUserServesAgain(t *testing.T) {
	s := begin(t, nil)
	first := s.leader(s.given("orders", false))
	info, err := os.Stat(first.DataDir())
	s.must(err, "find the member's user")
	uid := info.Sys().(*syscall.Stat_t).Uid
	s.removed("orders")
	s.eventually(60*time.Second, func() error {
		left, err := filepath.Glob(filepath.Join(s.rig.HostDir(first.ZoneLetter()), "trash", "*"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("the trash has %v", left)
		}
		return err
	})
	for n := range 3 { // one of them comes to the same host
		name := fmt.Sprintf("next%d", n)
		m := s.leader(s.given(name, false))
		info, err := os.Stat(m.DataDir())
		s.must(err, "find the member's user")
		// It is the lowest user that is free. A user below it may belong to another home that has
		// ended meanwhile.
		if m.Host == first.Host && info.Sys().(*syscall.Stat_t).Uid <= uid {
			return
		}
	}
	t.Errorf("neither user %d nor one below it was used again", uid)
}

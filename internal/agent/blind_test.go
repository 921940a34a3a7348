package agent

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/proc"
)

func TestWhyPatroniIsBlind(t *testing.T) {
	cases := []struct {
		name string
		said patroniSays
		lost bool
		has  string
	}{
		{"it sees it", patroniSays{known: true, state: "running"}, false, ""},
		{"it stops it", patroniSays{known: true, state: "stopping"}, false, ""},
		{"it starts it again", patroniSays{known: true, state: "restarting"}, false, ""},
		{"it copies", patroniSays{known: true, state: "creating replica"}, false, ""},
		{"it still starts it", patroniSays{known: true, state: "starting"}, false, "starting"},
		{"it thinks that the start failed", patroniSays{known: true, state: "start failed"}, false, "start failed"},
		{"etcd does not answer", patroniSays{state: "starting"}, false, ""},
		{"the socket is lost", patroniSays{known: true, state: "running"}, true, "socket"},
		{"the socket is lost without etcd", patroniSays{}, true, "socket"},
	}
	for _, c := range cases {
		if got := whyBlind(c.said, c.lost); (got == "") != (c.has == "") || !strings.Contains(got, c.has) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestWhereASocketLeads(t *testing.T) {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, ".s.PGSQL.1")
	self, other := proc.Process{PID: os.Getpid()}, proc.Process{PID: os.Getppid()}
	if leadsTo(socket, self) {
		t.Error("there is no socket")
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if !leadsTo(socket, self) {
		t.Error("it is ours")
	}
	if leadsTo(socket, other) {
		t.Error("somebody else listens")
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if leadsTo(socket, self) {
		t.Error("nobody listens any more")
	}
}

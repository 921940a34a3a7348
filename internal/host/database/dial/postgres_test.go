package dial

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/host/proc"
)

func TestWhereASocketLeads(t *testing.T) {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, ".s.PGSQL.1")
	self, other := proc.Process{PID: os.Getpid()}, proc.Process{PID: os.Getppid()}
	if LeadsTo(t.Context(), socket, self) {
		t.Error("there is no socket")
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if !LeadsTo(t.Context(), socket, self) {
		t.Error("it is ours")
	}
	if LeadsTo(t.Context(), socket, other) {
		t.Error("somebody else listens")
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if LeadsTo(t.Context(), socket, self) {
		t.Error("nobody listens any more")
	}
}

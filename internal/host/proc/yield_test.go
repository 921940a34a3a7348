package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"howdah/internal/host/proc/cgroup"
)

// A program that yields stands back with its whole session, and its agent does not.
func TestAProgramStandsBack(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.name, func(t *testing.T) {
			w := newWorld(t, kind)
			command := w.command("nice; touch begun; while [ ! -e go ]; do sleep 0.01; done")
			command.Yields = true
			process, err := w.group.Start(t.Context(), command)
			if err != nil {
				t.Fatal(err)
			}
			w.exists("begun")
			if own, nice := niceOf(t), strings.TrimSpace(w.logged()); nice != strconv.Itoa(min(own+10, 19)) {
				t.Errorf("its nice value is %q, and our own %d", nice, own)
			}
			if session := autogroup(t, process.PID); session != "" && session != "nice "+yieldNice {
				t.Errorf("its session has %s", session)
			}
			if session := autogroup(t, os.Getpid()); session != "" && session == "nice "+yieldNice {
				t.Error("who starts it stands back, too")
			}
			if cpu := w.host.layout.CPU; cpu.Version == cgroup.V2 {
				weight, err := os.ReadFile(filepath.Join(w.group.weightDir(cpu), "cpu.weight"))
				if err != nil || strings.TrimSpace(string(weight)) != "10" {
					t.Errorf("its group has the weight %q, %v", weight, err)
				}
			}
			w.touch("go")
			w.watch(process)
		})
	}
}

func niceOf(t *testing.T) int {
	t.Helper()
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	return 20 - own // getpriority(2): the system call counts from 40 to 1
}

// autogroup is the nice value of a process's session, or "" where the kernel knows none.
func autogroup(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	_, nice, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	return nice
}

// What yields within its own group alone does not yield to other members.
func TestTheWeightThatCounts(t *testing.T) {
	layout := cgroup.Layout{Unified: "/unified/howdah"}
	g := &Group{name: "job", host: &Host{layout: layout}}
	for controller, want := range map[cgroup.Controller]string{
		{Version: cgroup.V2, Top: layout.Unified}: "/unified/howdah/job.member",
		{Version: cgroup.V1, Top: "/cpu/howdah"}:  "/cpu/howdah/job.member",
	} {
		if got := g.weightDir(controller); got != want {
			t.Errorf("%+v: %s", controller, got)
		}
	}
}

package machine

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"howdah/internal/testkit"
)

// What is left out of a tree does not count, and nothing below it.
func TestPartsOfATreeAreLeftOut(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sh -c 'while :; do :; done' & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var busy int
	if _, err := fmt.Fscan(out, &busy); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(busy, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	whole := System{}.TreeOf(cmd.Process.Pid)
	part := whole
	part.Except = []int{busy}
	testkit.Eventually(t, time.Minute, func() error {
		if used, ok := (System{}).cpuSeconds(whole); !ok || used < 0.1 {
			return fmt.Errorf("the tree used %v s, %v", used, ok)
		}
		return nil
	})
	if used, ok := (System{}).cpuSeconds(part); !ok || used >= 0.1 {
		t.Errorf("without the busy one: %v s, %v", used, ok)
	}
	part.Except = []int{cmd.Process.Pid}
	if used, ok := (System{}).cpuSeconds(part); !ok || used != 0 {
		t.Errorf("without its root: %v s, %v", used, ok)
	}
}

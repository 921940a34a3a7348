// Package page runs the commands of a page of the guide, so that what it tells users to type is what
// was tried. Commands of a page that are meant to be run stand in fenced blocks marked sh.
package page

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/testkit/patience"
)

// Block is one block of commands.
type Block struct {
	// Heading is the heading below which it stands, without its marks.
	Heading  string
	Commands string
	// Line is the line of the page on which the commands begin, from 1.
	Line int
}

// fence opens a block of commands, and its first three characters close it.
const fence = "```sh"

// Blocks returns the blocks of commands of a page, in their order. Other blocks are passed over. A block
// that is not closed is an error.
func Blocks(text string) ([]Block, error) {
	var all []Block
	var heading string
	var open *Block
	other := false // in a block that is not one of commands
	number := 0
	for line := range strings.Lines(text) {
		number++
		bare := strings.TrimSpace(line)
		switch {
		case open != nil && bare == fence[:3]:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.Commands += line
		case strings.HasPrefix(bare, fence[:3]):
			if !other && bare == fence {
				open = &Block{Heading: heading, Line: number + 1}
			} else {
				other = !other
			}
		case !other && strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(bare, "#"))
		}
	}
	if open != nil {
		return nil, fmt.Errorf("the block at line %d is not closed", open.Line)
	}
	return all, nil
}

// Shell is what blocks are run with.
type Shell struct {
	Dir    string   // where they run
	Env    []string // all of it
	Within time.Duration
}

// Run runs a block by bash, which stops at the first command that fails, a part of a pipe too. If one
// fails, so does the test. It returns what the commands printed.
func (s Shell) Run(t testing.TB, b Block) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(s.Within))
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.Commands)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	// What bash started ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s, line %d: %v\n%s\n%s", b.Heading, b.Line, err, b.Commands, out)
	}
	return string(out)
}

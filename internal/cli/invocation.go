package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"howdah/internal/identity/home"
)

// invocation returns what a person types to run this very program: its name if the shell finds it,
// or else the shortest path.
func invocation() string {
	program, err := os.Executable()
	if err != nil {
		return "howdah"
	}
	if found, err := exec.LookPath("howdah"); err == nil && sameFile(found, program) {
		return "howdah"
	}
	dir, err := os.Getwd()
	if err != nil || dir == "/" {
		return program
	}
	if short, err := filepath.Rel(dir, program); err == nil && !strings.HasPrefix(short, "..") {
		return "./" + short
	}
	return program
}

func sameFile(a, b string) bool {
	one, errA := os.Stat(a)
	two, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(one, two)
}

// Pasteable returns a command that works when pasted. The command given begins with "howdah". This
// word becomes the path of this program, followed by the home if it is not the usual one. Commands
// of parts are left alone: parts run on machines of their own, whose paths and homes are not known
// here.
func (o *Options) Pasteable(command string) string {
	rest, ours := strings.CutPrefix(command, "howdah ")
	part, _, _ := strings.Cut(rest, " ")
	if !ours || part == "serve" || part == "agent" || part == "edge" {
		return command
	}
	prefix := ShellWord(o.Program)
	if o.At != nil && o.At.Dir != home.DefaultDir() {
		prefix += " --home " + ShellWord(o.At.Dir)
	}
	return prefix + " " + rest
}

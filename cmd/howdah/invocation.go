package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"howdah/internal/identity/home"
)

// invocation is what a person types to run this very program: its name where the
// shell finds it, the shortest path where not.
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

// pasteable makes a command that works when pasted of one that begins with
// "howdah": it gets our path, and the home if it is not the usual one. Parts run
// on machines of their own, where neither is known.
func (o *options) pasteable(command string) string {
	rest, ours := strings.CutPrefix(command, "howdah ")
	part, _, _ := strings.Cut(rest, " ")
	if !ours || part == "serve" || part == "agent" || part == "edge" {
		return command
	}
	prefix := shellWord(o.program)
	if o.at != nil && o.at.Dir != home.DefaultDir() {
		prefix += " --home " + shellWord(o.at.Dir)
	}
	return prefix + " " + rest
}

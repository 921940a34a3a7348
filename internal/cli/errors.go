package cli

import (
	"errors"
)

var (
	// ErrUsage marks a mistake in the command line.
	ErrUsage = errors.New("see --help")
	// ErrWrong ends `howdah status --check` when something is wrong.
	ErrWrong = errors.New("something is wrong")
)

// CodeInterrupted is what shells answer for a program that SIGINT ended.
const CodeInterrupted = 130

// exitCode is 2 for a mistake in the command line, 3 for a check that failed, and
// 1 for anything else that went wrong.
func exitCode(err error) int {
	switch {
	case errors.Is(err, ErrUsage):
		return 2
	case errors.Is(err, ErrWrong):
		return 3
	}
	return 1
}

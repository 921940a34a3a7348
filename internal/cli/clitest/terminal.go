package clitest

import (
	"io"
	"strings"
)

// Terminal says at which ends a person is.
type Terminal string

// In reports whether a person types.
func (f Terminal) In() bool { return strings.Contains(string(f), "in") }

// Out reports whether a person sees the results.
func (f Terminal) Out() bool { return strings.Contains(string(f), "out") }

// Err reports whether a person sees progress and errors.
func (f Terminal) Err() bool { return strings.Contains(string(f), "err") }

// Secret returns what a person types that the terminal does not show.
func (f Terminal) Secret() (string, error) {
	if strings.Contains(string(f), "hangs up") {
		return "", io.EOF
	}
	return "a-password-of-a-user", nil
}

// Width is that of the terminal, or 0 if there is none.
func (f Terminal) Width() int {
	if f.Out() {
		return 100
	}
	return 0
}

// Package screen is how the command line looks: tables, colours, and progress while a command
// waits. What only a terminal can do is behind Terminal. Anywhere else the output is plain lines
// that a program or a log can keep.
package screen

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal says what is at the ends of the program's input and output.
type Terminal interface {
	// In, Out and Err report whether a person is there.
	In() bool
	Out() bool
	Err() bool
	// Width returns the width of the output in characters, or 0 if there is no terminal.
	Width() int
	// Secret reads a line from the terminal without showing it.
	Secret() (string, error)
}

// Screen is where a command reads and writes.
type Screen struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       Terminal
	// Plain forbids colour: NO_COLOR (no-color.org), or TERM=dumb.
	Plain bool
}

// Std returns the screen of this process.
func Std() *Screen {
	return &Screen{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: std{},
		Plain: os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
	}
}

type std struct{}

func (std) In() bool  { return term.IsTerminal(int(os.Stdin.Fd())) }
func (std) Out() bool { return term.IsTerminal(int(os.Stdout.Fd())) }
func (std) Err() bool { return term.IsTerminal(int(os.Stderr.Fd())) }

func (std) Width() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func (std) Secret() (string, error) {
	line, err := term.ReadPassword(int(os.Stdin.Fd()))
	return string(line), err
}

// Style is how a text looks where colour is possible.
type Style string

// The styles, as parameters of the control sequence SGR (ECMA-48, 8.3.117).
const (
	None   Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// Color reports whether standard output takes colour.
func (s *Screen) Color() bool { return !s.Plain && s.Terminal.Out() }

// Paint gives a text a style, if standard output takes colour.
func (s *Screen) Paint(style Style, text string) string { return paint(s.Color(), style, text) }

func paint(color bool, style Style, text string) string {
	if !color || style == None || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Clear returns what makes room for a new screenful. On a terminal that takes the place of the last
// one.
func (s *Screen) Clear() string {
	if !s.Terminal.Out() {
		return "\n"
	}
	return "\x1b[H\x1b[2J"
}

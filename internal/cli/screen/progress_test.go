package screen

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type ends struct {
	err   bool
	width int
}

func (e ends) In() bool   { return false }
func (e ends) Out() bool  { return e.width > 0 }
func (e ends) Err() bool  { return e.err }
func (e ends) Width() int { return e.width }

func (e ends) Secret() (string, error) { return "", nil }

func TestPlainProgressIsALineAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := (&Screen{Stderr: &out, Terminal: ends{}}).Begin(time.Now)
		p.Step("waiting for a primary", time.Now())
		time.Sleep(1500 * time.Millisecond)
		p.Step("waiting for a primary", time.Now())
		p.Step("waiting for m2", time.Now())
		p.Note("no host in zone c")
		p.Note("no host in zone c")
		time.Sleep(20 * time.Second)
		p.End()
		p.End()
		want := "  0.00 s  waiting for a primary\n   1.5 s  waiting for m2\n          no host in zone c\n"
		if out.String() != want {
			t.Errorf("got\n%q\nwant\n%q", out.String(), want)
		}
	})
}

func TestHowFarAStepIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := (&Screen{Stderr: &out, Terminal: ends{}}).Begin(time.Now)
		p.Far("nothing goes on")
		p.Step("copying", time.Now())
		for _, far := range []string{"1 of 9", "2 of 9", "2 of 9", "3 of 9", "4 of 9"} {
			time.Sleep(6 * time.Second)
			p.Far(far)
		}
		p.End()
		want := "  0.00 s  copying\n    12 s  copying: 2 of 9\n    24 s  copying: 3 of 9\n"
		if out.String() != want {
			t.Errorf("got\n%q\nwant\n%q", out.String(), want)
		}
	})
}

func TestLiveProgressRunsAndLeavesWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := (&Screen{Stderr: &out, Terminal: ends{err: true, width: 30}, Plain: true}).Begin(time.Now)
		p.Step("a step whose name does not fit on the line", time.Now())
		time.Sleep(1050 * time.Millisecond)
		p.End()
		frames := strings.Split(out.String(), "\r\x1b[K")
		if len(frames) < 10 {
			t.Errorf("only %d frames in a second", len(frames))
		}
		for _, f := range frames[:len(frames)-1] {
			if n := len([]rune(f)); n >= 30 {
				t.Errorf("a line of %d characters on a terminal of 30: %q", n, f)
			}
		}
		if last := frames[len(frames)-1]; last != "   1.1 s  ✓ a step whose name does not fit on the line\n" {
			t.Errorf("left is %q", last)
		}
	})
}

func TestColourIsForTerminalsThatWantIt(t *testing.T) {
	cases := []struct {
		plain, terminal, want bool
	}{{false, true, true}, {true, true, false}, {false, false, false}}
	for _, c := range cases {
		width := 0
		if c.terminal {
			width = 80
		}
		s := &Screen{Plain: c.plain, Terminal: ends{width: width}}
		if got := s.Paint(Red, "x") != "x"; got != c.want {
			t.Errorf("%+v: colour %v", c, got)
		}
	}
}

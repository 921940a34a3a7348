package screen

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// spin is the pause after which a terminal's running line is drawn again.
const spin = 100 * time.Millisecond

var wheel = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// Progress shows on standard error the steps of something that a command waits for. A terminal has
// one running line, with the time that it takes. Elsewhere each step is a line, with the time since
// the beginning.
type Progress struct {
	out   io.Writer
	live  bool
	color bool
	width int // of the terminal; a longer line would not be erased
	began time.Time
	now   func() time.Time

	mu    sync.Mutex
	step  string    // guarded by mu
	since time.Time // guarded by mu
	turn  int       // guarded by mu
	far   string    // guarded by mu: how far the step is
	wrote time.Time // guarded by mu: when a line said how far
	told  map[string]bool
	end   chan struct{}
	over  sync.WaitGroup
}

// Begin starts to show progress. The caller must call End.
func (s *Screen) Begin(now func() time.Time) *Progress {
	p := &Progress{
		out: s.Stderr, live: s.Terminal.Err(), color: !s.Plain && s.Terminal.Err(), width: s.Terminal.Width(),
		began: now(), now: now, told: map[string]bool{}, end: make(chan struct{}),
	}
	if p.live {
		p.over.Go(p.run)
	}
	return p
}

func (p *Progress) run() {
	timer := time.NewTicker(spin)
	defer timer.Stop()
	for {
		select {
		case <-p.end:
			return
		case <-timer.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// Step says what is going on now. The same step again changes nothing.
func (p *Progress) Step(name string, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == p.step {
		return
	}
	p.finish()
	p.step, p.since, p.far, p.wrote = name, since, "", p.now()
	switch {
	case name == "":
	case p.live:
		p.draw()
	default:
		fmt.Fprintf(p.out, "%8s  %s\n", Span(p.now().Sub(p.began)), name)
	}
}

// farEvery is how often a line says how far a step is, where no running line does.
const farEvery = 10 * time.Second

// Far says how far the step is that is going on.
func (p *Progress) Far(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step == "" || text == p.far {
		return
	}
	p.far = text
	if now := p.now(); !p.live && text != "" && now.Sub(p.wrote) >= farEvery {
		p.wrote = now
		fmt.Fprintf(p.out, "%8s  %s: %s\n", Span(now.Sub(p.began)), p.step, text)
	}
}

// Note tells something once.
func (p *Progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told[text] {
		return
	}
	p.told[text] = true
	p.erase()
	fmt.Fprintln(p.out, paint(p.color, Yellow, "          "+text))
}

// End ends the display. The last step counts as done.
func (p *Progress) End() {
	p.Step("", time.Time{})
	select {
	case <-p.end:
	default:
		close(p.end)
	}
	p.over.Wait()
}

// finish leaves the line of a step that is over. It must be called with mu held.
func (p *Progress) finish() {
	if !p.live || p.step == "" {
		return
	}
	p.erase()
	fmt.Fprintf(p.out, "%8s  %s %s\n", Span(p.now().Sub(p.since)), paint(p.color, Green, "✓"), p.step)
}

// draw must be called with mu held.
func (p *Progress) draw() {
	if p.step == "" {
		return
	}
	p.turn++
	p.erase()
	line := []rune(fmt.Sprintf("%8s  %c %s", Span(p.now().Sub(p.since)), wheel[p.turn%len(wheel)], p.step))
	if p.far != "" {
		line = append(line, []rune(": "+p.far)...)
	}
	if p.width > 0 && len(line) >= p.width {
		line = line[:p.width-1]
	}
	fmt.Fprint(p.out, string(line))
}

func (p *Progress) erase() {
	if p.live {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

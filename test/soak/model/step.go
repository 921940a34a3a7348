package model

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Step is one thing that is done to the fleet, an operation or a fault: a verb with its words, such
// as "failover orders".
type Step struct {
	Verb  string
	Words []string
	// Together says that it is done at once with the step before it.
	Together bool
}

// Word returns one of the words, or "" if there are fewer.
func (s Step) Word(n int) string {
	if n < len(s.Words) {
		return s.Words[n]
	}
	return ""
}

// Do returns the step without when it is done.
func (s Step) Do() string { return strings.Join(append([]string{s.Verb}, s.Words...), " ") }

func (s Step) String() string {
	if s.Together {
		return "& " + s.Do()
	}
	return s.Do()
}

// Sequence is what a soak does, in this order. A line of its text is a step.
type Sequence []Step

func (s Sequence) String() string {
	var text strings.Builder
	for _, step := range s {
		fmt.Fprintln(&text, step)
	}
	return text.String()
}

// Parse reads a sequence. It leaves out empty lines, and lines that begin with #.
func Parse(text io.Reader) (Sequence, error) {
	var all Sequence
	lines := bufio.NewScanner(text)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		step := Step{Together: words[0] == "&"}
		if step.Together {
			words = words[1:]
		}
		if len(words) == 0 || verbs[words[0]].apply == nil {
			return nil, fmt.Errorf("line %d: %q is no step", n, lines.Text())
		}
		step.Verb, step.Words = words[0], words[1:]
		all = append(all, step)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the sequence: %w", err)
	}
	return all, nil
}

// Round is what is done at once, with the fleet before and after it.
type Round struct {
	Steps         []Step
	Before, After *Fleet
}

// Subjects returns the databases that a round's steps name, before and after it.
func (r Round) Subjects() []string {
	var all []string
	for _, s := range r.Steps {
		all = append(all, Subjects(r.Before, s)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Rounds groups a sequence by what is done at once, and says what must hold after each round. It
// refuses a sequence that makes no sense, such as one that was changed by hand.
func Rounds(s Sequence, f *Fleet) ([]Round, error) {
	var all []Round
	for n, step := range s {
		next := f.Clone()
		if err := Apply(next, step); err != nil {
			return nil, fmt.Errorf("step %d, %q: %w", n+1, step.Do(), err)
		}
		if !step.Together || len(all) == 0 {
			all = append(all, Round{Before: f})
		}
		last := &all[len(all)-1]
		if !together(last.Before, last.Steps, step) {
			return nil, fmt.Errorf("step %d, %q: it cannot be done at once with what is before it", n+1, step.Do())
		}
		last.Steps = append(last.Steps, step)
		last.After, f = next, next
	}
	return all, nil
}

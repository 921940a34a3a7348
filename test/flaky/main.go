// Command flaky reads the events of a test run in which failed tests were run again (go test -json,
// as gotestsum writes them), and lists what failed first. It exits with 1 if that was a loss of
// data: a second run that loses nothing does not undo the loss.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// noSecondChance is a word in what a test says when a write was acknowledged that should not have
// been, or when an acknowledged write is not there any more.
const noSecondChance = "acknowledged"

// event is one line of go test -json, with the fields that are used here.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// report is what a person has to look at.
type report struct {
	Flaky []string // package and test, in order
	Lost  []string // of these, those that told of lost data
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "flaky: usage: flaky EVENTS")
		os.Exit(2)
	}
	lost, err := show(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "flaky:", err)
	}
	if lost || err != nil {
		os.Exit(1)
	}
}

// show prints what a run was like. lost reports whether a test told of lost data.
func show(events string) (lost bool, err error) {
	file, err := os.Open(events)
	if err != nil {
		return false, err
	}
	defer file.Close()
	r, err := read(file)
	if err != nil {
		return false, err
	}
	for _, name := range r.Flaky {
		fmt.Println("FLAKY, failed before it passed:", name)
	}
	for _, name := range r.Lost {
		fmt.Println("FAILED, data may have been lost:", name)
	}
	return len(r.Lost) > 0, nil
}

// read collects every attempt that failed. Attempts of one test follow each other.
func read(events io.Reader) (report, error) {
	said := map[string]*strings.Builder{}
	flaky, lost := map[string]bool{}, map[string]bool{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return report{}, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return report{}, fmt.Errorf("read %q: %w", line, err)
		}
		if e.Test == "" {
			continue
		}
		name := e.Package + " " + e.Test
		switch e.Action {
		case "run":
			said[name] = &strings.Builder{}
		case "output":
			if said[name] != nil {
				said[name].WriteString(e.Output)
			}
		case "fail":
			flaky[name] = true
			if said[name] != nil && strings.Contains(said[name].String(), noSecondChance) {
				lost[name] = true
			}
		}
	}
	return report{Flaky: slices.Sorted(maps.Keys(flaky)), Lost: slices.Sorted(maps.Keys(lost))}, nil
}

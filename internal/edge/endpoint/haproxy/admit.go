package haproxy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"howdah/internal/edge/endpoint"
	"howdah/internal/model/network/cidr"
)

// view is all that a proxy says about itself.
type view struct {
	state
	// guarded says that the proxy checks who may connect. Proxies of earlier versions do not.
	guarded  bool
	networks []string // sorted: whose clients may
}

// look asks a proxy for everything.
func (f files) look(ctx context.Context) (view, error) {
	answer, err := f.ask(ctx, show, "show acl "+f.admitted())
	if err != nil {
		return view{}, err
	}
	return parseView(answer)
}

// parseView reads the answers to the two commands of look, with an empty line
// between them.
func parseView(answer string) (view, error) {
	table, list, _ := strings.Cut(answer, "\n\n")
	s, err := parseState(table)
	if err != nil {
		return view{}, err
	}
	v := view{state: s, guarded: !strings.Contains(list, "Unknown ACL")}
	for line := range strings.Lines(list) {
		// A line has the number of an entry and its network.
		if words := strings.Fields(line); v.guarded && len(words) == 2 {
			v.networks = append(v.networks, words[1])
		}
	}
	slices.Sort(v.networks)
	return v, nil
}

// admittedTo returns the networks whose clients may connect, sorted, in the form that a proxy has
// them.
func admittedTo(e endpoint.Endpoint) []string {
	if e.Allow == nil {
		return []string{cidr.Everyone.String()}
	}
	return slices.Sorted(slices.Values(cidr.Texts(e.Allow)))
}

// admits reports whether the proxy lets in exactly the clients that may connect.
func (v view) admits(e endpoint.Endpoint) bool {
	if !v.guarded {
		return e.Allow == nil
	}
	return slices.Equal(v.networks, admittedTo(e))
}

// changes returns the commands that make a proxy let in exactly the clients that may connect. New
// networks come first, so that nobody is refused in between who may connect both before and after.
func (v view) changes(list string, e endpoint.Endpoint) []string {
	var cmds []string
	want := admittedTo(e)
	for _, n := range want {
		if !slices.Contains(v.networks, n) {
			cmds = append(cmds, "add acl "+list+" "+n)
		}
	}
	for _, n := range v.networks {
		if !slices.Contains(want, n) {
			cmds = append(cmds, "del acl "+list+" "+n)
		}
	}
	return cmds
}

// mostCommands is how many commands go into one line for a proxy, which reads at most 16 KB of it.
const mostCommands = 50

// admit changes who may connect and reads back that it is so.
func (f files) admit(ctx context.Context, now view, e endpoint.Endpoint) error {
	if now.admits(e) {
		return nil
	}
	var answer strings.Builder
	for cmds := range slices.Chunk(now.changes(f.admitted(), e), mostCommands) {
		text, err := f.ask(ctx, cmds...)
		if err != nil {
			return err
		}
		answer.WriteString(text)
	}
	now, err := f.look(ctx)
	if err != nil {
		return err
	}
	if !now.admits(e) {
		return fmt.Errorf("let %v in: the proxy says %q", admittedTo(e), strings.TrimSpace(answer.String()))
	}
	return nil
}

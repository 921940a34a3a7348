package plan

import (
	"fmt"
	"slices"
	"strings"

	"howdah/internal/model/extension"
	"howdah/internal/model/param"
)

// absentExtensions is the setting of the platform's module that lists what users may not create
// anew.
const absentExtensions = "howdah.absent_extensions"

// compareExtensions notes which extensions some members' hosts lack. An extension that is created
// in spite of that would not work after a failover. It tells which host lacks what.
func (w *work) compareExtensions() {
	var has [][]string
	for _, m := range w.members() {
		h, _ := w.host(m.Host)
		has = append(has, w.extensionsOf(h))
	}
	missing := extension.Missing(has...)
	w.out.Layout.Missing = missing
	if len(missing) == 0 {
		return
	}
	told := map[string]bool{}
	for _, m := range w.members() {
		h, _ := w.host(m.Host)
		if lacks := w.lacks(h, missing); len(lacks) > 0 && !told[h.Name] {
			told[h.Name] = true
			names := strings.Join(lacks, ",")
			w.tell(Problem{Kind: LacksExtensions, Host: h.Name, Text: fmt.Sprintf(
				"host %s lacks extensions that other hosts of the database have, and none of them can be created until it has them: %s", h.Name, names)})
		}
	}
}

// extensionsOf returns what a host has for the database, or nil if its agent does not say.
func (k *known) extensionsOf(h Host) []string { return h.Extensions[k.Want.Major] }

// lacks returns which of these extensions a host lacks. One whose agent does not say lacks none.
func (k *known) lacks(h Host, names []string) []string {
	has := k.extensionsOf(h)
	if has == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(has, name) })
}

// lacksOfTheOthers returns how many of the extensions, which all hosts of the database have now, a
// host lacks. Users may have created them.
func (p places) lacksOfTheOthers(h Host) int {
	var common []string
	first := true
	for _, m := range p.members() {
		other, _ := p.host(m.Host)
		has := p.extensionsOf(other)
		switch {
		case has == nil:
			continue
		case first:
			common, first = slices.Clone(has), false
		default:
			common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(has, name) })
		}
	}
	return len(p.lacks(h, common))
}

// lacksLibrary returns a library with which the seat's PostgreSQL would not start on a host, or "".
func (p places) lacksLibrary(h Host, s Seat) string {
	known := extension.Libraries()
	wanted := slices.Concat(param.Added(p.Want.Parameters), param.Added(s.Values))
	wanted = slices.DeleteFunc(wanted, func(name string) bool { return !slices.Contains(known, name) })
	if lacks := p.lacks(h, wanted); len(lacks) > 0 {
		return lacks[0]
	}
	return ""
}

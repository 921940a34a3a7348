package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"howdah/internal/model/extension"
	"howdah/internal/model/param"
)

// absentExtensions is the setting of the platform's module that lists what users may not create
// anew: "hll" is an extension, and "postgis 3.3.2" all versions of one that are newer than that.
const absentExtensions = "howdah.absent_extensions"

// compareExtensions notes which extensions, or versions of them, some members' hosts lack. What is
// created in spite of that would not work after a failover. It tells which host lacks what. What
// runs goes on: packages are upgraded host by host.
func (w *work) compareExtensions() {
	var has []extension.Installed
	for _, m := range w.members() {
		h, _ := w.host(m.Host)
		has = append(has, w.extensionsOf(h))
	}
	missing, oldest := extension.Missing(has...), extension.Differing(has...)
	w.out.Layout.Missing = missing
	for _, name := range slices.Sorted(maps.Keys(oldest)) {
		w.out.Layout.Missing = append(w.out.Layout.Missing, name+" "+oldest[name])
	}
	told := map[string]bool{}
	for _, m := range w.members() {
		h, _ := w.host(m.Host)
		if !told[h.Name] {
			told[h.Name] = true
			w.tellLacks(h, missing)
			w.tellOlder(h, has, slices.Sorted(maps.Keys(oldest)))
		}
	}
}

func (w *work) tellLacks(h Host, missing []string) {
	lacks := w.lacks(h, missing)
	if len(lacks) == 0 {
		return
	}
	names := strings.Join(lacks, ",")
	text := "host %s lacks extensions that other hosts of the database have, and none of them can be created until it has them: %s"
	if w.extensionsOf(h) == nil {
		text = "the agent of host %s does not say which extensions it has, because it is of an older release or cannot look, and these cannot be created until it does: %s"
	}
	w.tell(Problem{Kind: LacksExtensions, Host: h.Name, Extensions: names, Text: fmt.Sprintf(text, h.Name, names)})
}

// tellOlder tells which of these extensions a host has in an older version than some other one.
func (w *work) tellOlder(h Host, all []extension.Installed, differing []string) {
	var names, texts []string
	for _, name := range differing {
		its, has := w.extensionsOf(h)[name]
		newest := its
		for _, other := range all {
			if version := other[name]; extension.Compare(version, newest) > 0 {
				newest = version
			}
		}
		if has && newest != its {
			names, texts = append(names, name), append(texts, fmt.Sprintf("%s %s (others: %s)", name, its, newest))
		}
	}
	if len(names) > 0 {
		w.tell(Problem{Kind: OlderExtensions, Host: h.Name, Extensions: strings.Join(names, ","), Text: fmt.Sprintf(
			"host %s has older versions of extensions than other hosts of the database, and no newer ones can be created until it has them: %s", h.Name, strings.Join(texts, ", "))})
	}
}

// extensionsOf returns what a host has for the database, or nil if its agent does not say.
func (k *known) extensionsOf(h Host) extension.Installed { return h.Extensions[k.Want.Major] }

// lacks returns which of these extensions a host is not known to have.
func (k *known) lacks(h Host, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), k.extensionsOf(h).Has)
}

// lacksOfTheOthers returns how many of the extensions, which all hosts of the database have now, a
// host lacks, or has in a version that is older than theirs. Users may have created them.
func (p places) lacksOfTheOthers(h Host) int {
	common := p.common()
	its, older := p.extensionsOf(h), 0
	for name, version := range common {
		if its.Has(name) && extension.Compare(its[name], version) < 0 {
			older++
		}
	}
	return older + len(p.lacks(h, slices.Collect(maps.Keys(common))))
}

// common returns what all hosts of the database have now, each in its oldest version.
func (p places) common() extension.Installed {
	var common extension.Installed
	for _, m := range p.members() {
		other, _ := p.host(m.Host)
		has := p.extensionsOf(other)
		switch {
		case has == nil:
			continue
		case common == nil:
			common = maps.Clone(has)
		default:
			maps.DeleteFunc(common, func(name, _ string) bool { return !has.Has(name) })
			for name, version := range common {
				common[name] = slices.MinFunc([]string{version, has[name]}, extension.Compare)
			}
		}
	}
	return common
}

// lacksLibrary returns a library that a host is not known to have, and without which the seat's
// PostgreSQL would not start, or "". A member that is there stays, whatever its host says.
func (p places) lacksLibrary(h Host, s Seat) string {
	known := extension.Libraries()
	wanted := slices.Concat(param.Added(p.Want.Parameters), param.Added(s.Values))
	wanted = slices.DeleteFunc(wanted, func(name string) bool { return !slices.Contains(known, name) })
	return cmp.Or(p.lacks(h, wanted)...)
}

// whyWithout says why a host that lacks a library is no place.
func (p places) whyWithout(h Host, library string) string {
	if p.extensionsOf(h) == nil {
		return fmt.Sprintf("does not say whether it has the library %s, which the parameter group preloads: its agent is of an older release, or cannot look", library)
	}
	return fmt.Sprintf("lacks the library %s, which the parameter group preloads", library)
}

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"howdah/internal/lab/experiment"
	"howdah/internal/observe/environment"
	"howdah/internal/observe/machine"
)

// environment lists what was measured, and the settings of the server that are not the default.
func (w writer) environment() (rows [][2]string, settings [][3]string) {
	target := [2]string{word(w.language, "env_target"), w.r.Target.Name}
	e := w.r.Environment
	if e == nil {
		rows = append(rows, target, [2]string{word(w.language, "env_version"), w.r.Target.Version})
		for _, name := range slices.Sorted(maps.Keys(w.r.Target.Parameters)) { // of a result of form 1
			settings = append(settings, [3]string{name, w.r.Target.Parameters[name], ""})
		}
		return rows, settings
	}
	rows, settings = w.describe(*e)
	rows = append([][2]string{target}, rows...)
	if w.r.PGBench != "" {
		rows = append(rows, [2]string{word(w.language, "env_pgbench"), w.r.PGBench})
	}
	for n, server := range w.r.Servers {
		if different := w.differences(*e, server.Environment); n > 0 && different != "" {
			rows = append(rows, [2]string{fmt.Sprintf(word(w.language, "env_other"), w.common(server.Settings)), different})
		}
	}
	if missing := strings.Join(w.missing(), "; "); missing != "" {
		rows = append(rows, [2]string{word(w.language, "env_missing"), missing})
	}
	return rows, settings
}

// describe lists what one server is, and its settings that are not the default.
func (w writer) describe(e environment.Environment) (rows [][2]string, settings [][3]string) {
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, [2]string{word(w.language, "env_"+name), value})
		}
	}
	add("version", e.Database.Version)
	add("size", bytesText(float64(e.Database.SizeBytes)))
	checksums := word(w.language, "off")
	if e.Database.Checksums {
		checksums = word(w.language, "on")
	}
	add("checksums", checksums)
	add("extensions", extensions(e.Database.Extensions))
	add("standbys", standbyNames(e.Database.Standbys))
	w.host("server", e.Host, add)
	if e.Limits != nil {
		add("limits", w.limitsText(*e.Limits))
	}
	for _, s := range e.Storage {
		add("storage", w.storage(s))
	}
	w.host("client", e.Client, add)
	for _, name := range slices.Sorted(maps.Keys(e.Database.Settings)) {
		s := e.Database.Settings[name]
		settings = append(settings, [3]string{name, strings.TrimSpace(s.Value + " " + s.Unit), s.Source})
	}
	return rows, settings
}

// differences says what of a server differs from the first one, but for the size of its data.
func (w writer) differences(first, other environment.Environment) string {
	one, two := w.facts(w.describe(first)), w.facts(w.describe(other))
	var all []string
	for _, name := range slices.Sorted(maps.Keys(two)) {
		if two[name] != one[name] && name != word(w.language, "env_size") {
			all = append(all, name+" "+two[name])
		}
		delete(one, name)
	}
	for _, name := range slices.Sorted(maps.Keys(one)) {
		all = append(all, name+" –")
	}
	return strings.Join(all, "; ")
}

// common names the levels that all of some settings have.
func (w writer) common(keys []string) string {
	var levels map[string]any
	for _, s := range w.e.Settings() {
		switch {
		case !slices.Contains(keys, w.e.Key(s)):
		case levels == nil:
			levels = maps.Clone(s)
		default:
			maps.DeleteFunc(levels, func(name string, level any) bool { return experiment.Word(s[name]) != experiment.Word(level) })
		}
	}
	var all []string
	for _, f := range w.e.Factors {
		if level, same := levels[f.Name]; same && len(f.Levels) > 1 {
			all = append(all, f.Title.In(w.language)+" "+experiment.Word(level))
		}
	}
	return strings.Join(all, ", ")
}

// host tells of a machine: the server's, or that of the load generator alone.
func (w writer) host(kind string, h *environment.Host, add func(name, value string)) {
	if h == nil {
		return
	}
	parts := []string{fmt.Sprintf(word(w.language, "cpus"), h.CPUs, h.CPUModel), fmt.Sprintf(word(w.language, "memory"), bytesText(h.MemoryBytes))}
	parts = append(parts, h.System, "Linux "+h.Kernel)
	if h.Virtualisation != "" {
		parts = append(parts, fmt.Sprintf(word(w.language, "virtual"), h.Virtualisation))
	}
	if h.SwapBytes > 0 {
		parts = append(parts, "swap "+bytesText(h.SwapBytes))
	}
	if h.TransparentHP != "" {
		parts = append(parts, "transparent huge pages "+h.TransparentHP)
	}
	if h.Governor != "" {
		parts = append(parts, "governor "+h.Governor)
	}
	add(kind, strings.Join(parts, ", "))
	var kernel []string
	for _, name := range slices.Sorted(maps.Keys(h.Sysctl)) {
		kernel = append(kernel, name+"="+h.Sysctl[name])
	}
	add("sysctl", strings.Join(kernel, ", "))
}

func (w writer) limitsText(l machine.Limits) string {
	var parts []string
	for _, each := range []struct {
		value float64
		text  string
	}{
		{l.CPUs, fmt.Sprintf("%s CPU", short(l.CPUs))}, {l.MemoryBytes, fmt.Sprintf(word(w.language, "memory"), bytesText(l.MemoryBytes))},
		{l.ReadIOPS, short(l.ReadIOPS) + " read IOPS"}, {l.WriteIOPS, short(l.WriteIOPS) + " write IOPS"},
		{l.ReadBPS, bytesText(l.ReadBPS) + "/s read"}, {l.WriteBPS, bytesText(l.WriteBPS) + "/s write"},
	} {
		if each.value > 0 {
			parts = append(parts, each.text)
		}
	}
	if len(parts) == 0 {
		return word(w.language, "unlimited")
	}
	return strings.Join(parts, ", ")
}

func (w writer) storage(s environment.Storage) string {
	parts := []string{s.Part + ": " + strings.TrimSpace(s.FileSystem+" "+s.Options)}
	if s.Device != "" {
		disk := s.Device
		if s.Rotational {
			disk += " (" + word(w.language, "rotational") + ")"
		}
		parts = append(parts, strings.TrimSpace(disk+" "+s.Model), strings.TrimSpace(s.Scheduler+" "+s.WriteCache))
	}
	parts = append(parts, fmt.Sprintf(word(w.language, "free"), bytesText(s.FreeBytes), bytesText(s.SizeBytes)))
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// missing lists what could not be seen of the target, each once.
func (w writer) missing() []string {
	all := slices.Clone(w.r.Environment.Missing)
	for _, p := range w.r.Points {
		for _, o := range p.Observed {
			all = append(all, o.Missing...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func extensions(all map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, name+" "+all[name])
	}
	return strings.Join(parts, ", ")
}

func standbyNames(all []environment.Standby) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, s.Name+" ("+s.State+", "+s.Sync+")")
	}
	return strings.Join(parts, ", ")
}

// bytesText is a size for people.
func bytesText(bytes float64) string {
	unit := 0
	for units := []string{"B", "KiB", "MiB", "GiB", "TiB"}; ; unit++ {
		if bytes < 1024 || unit == len(units)-1 {
			return fmt.Sprintf("%.3g %s", bytes, units[unit])
		}
		bytes /= 1024
	}
}

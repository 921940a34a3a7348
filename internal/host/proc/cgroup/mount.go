package cgroup

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Mount is one mounted control group hierarchy, or another file system when FSType is neither.
type Mount struct {
	Point   string   // where it is mounted
	Root    string   // which directory of the file system is mounted there
	FSType  string   // cgroup2, cgroup, ext4, …
	Source  string   // the device, for file systems that have one
	Options []string // of the file system: the controllers of a version 1 hierarchy are among them
}

// ParseMounts reads the text of /proc/PID/mountinfo. It leaves out lines that it cannot read.
func ParseMounts(text string) []Mount {
	var mounts []Mount
	for line := range strings.Lines(text) {
		before, after, found := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !found || len(left) < 6 || len(right) < 3 {
			continue
		}
		mounts = append(mounts, Mount{
			Root: unescape(left[3]), Point: unescape(left[4]),
			FSType: right[0], Source: unescape(right[1]), Options: strings.Split(right[2], ","),
		})
	}
	return mounts
}

// unescape undoes mountinfo's octal escapes for space, tab, newline and backslash.
func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+4 <= len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// own maps a controller's name, or "" for version 2, to the group of this process.
type own map[string]string

// parseOwn reads the text of /proc/PID/cgroup.
func parseOwn(text string) own {
	groups := own{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			groups[name] = parts[2]
		}
	}
	return groups
}

// bases lists the directories below which our top group may be made, best first: the top of the
// hierarchy; the group above ours, which a service manager leaves to us when it starts us in a
// sub-group; our own group.
func (m Mount) bases(ownGroup string) []string {
	bases := []string{m.Point}
	// The kernel shows a group outside of our namespace as "/..".
	inside, err := filepath.Rel(m.Root, ownGroup)
	if err != nil || strings.HasPrefix(inside, "..") || strings.HasPrefix(ownGroup, "/..") {
		return bases
	}
	for _, group := range []string{path.Dir(inside), inside} {
		if dir := filepath.Join(m.Point, group); !slices.Contains(bases, dir) {
			bases = append(bases, dir)
		}
	}
	return bases
}

// readMounts reads the mounts and own groups of this process from a process table.
func readMounts(procRoot string) ([]Mount, own, error) {
	mounts, err := os.ReadFile(filepath.Join(procRoot, "self/mountinfo"))
	if err != nil {
		return nil, nil, fmt.Errorf("read mounts: %w", err)
	}
	// Kernels without control groups have no such file. Then there are none.
	groups, _ := os.ReadFile(filepath.Join(procRoot, "self/cgroup"))
	return ParseMounts(string(mounts)), parseOwn(string(groups)), nil
}

package experiment

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed builtin/*.yaml
var files embed.FS

// BuiltIn returns the experiments that are built in, by name.
func BuiltIn() ([]*Experiment, error) {
	entries, err := files.ReadDir("builtin")
	if err != nil {
		return nil, err
	}
	var all []*Experiment
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("builtin", entry.Name()))
		if err != nil {
			return nil, err
		}
		e, err := Read(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Experiment) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Source returns the file of an experiment that is built in.
func Source(name string) ([]byte, error) {
	if !nameForm.MatchString(name) {
		return nil, fs.ErrNotExist
	}
	return files.ReadFile(path.Join("builtin", name+".yaml"))
}

package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// verb is what can be done. It draws the words of a step, and says what the step makes of the
// fleet. It refuses words that make no sense there.
type verb struct {
	draw  func(t *rapid.T, f *Fleet) []string
	apply func(f *Fleet, s Step) error
	// touches returns what a step must have to itself in its round: databases by name, and what
	// there is one of.
	touches func(f *Fleet, s Step) []string
}

var verbs map[string]verb

func init() {
	verbs = map[string]verb{}
	for _, some := range []map[string]verb{setting, existence, backups, changes, restarts, faults} {
		for name, v := range some {
			if v.touches == nil {
				v.touches = first
			}
			verbs[name] = v
		}
	}
}

// IsFault reports whether the step breaks something and mends it again. The fleet does not change.
func (s Step) IsFault() bool { _, is := faults[s.Verb]; return is }

// Apply does to the fleet what the step does.
func Apply(f *Fleet, s Step) error {
	v, ok := verbs[s.Verb]
	if !ok {
		return fmt.Errorf("there is no %q", s.Verb)
	}
	return v.apply(f, s)
}

// Subjects returns the databases that a step is about.
func Subjects(f *Fleet, s Step) []string {
	return slices.DeleteFunc(verbs[s.Verb].touches(f, s), func(name string) bool { return strings.Contains(name, " ") })
}

// together reports whether the step can be done at once with others.
func together(f *Fleet, others []Step, s Step) bool {
	mine := verbs[s.Verb].touches(f, s)
	for _, other := range others {
		for _, theirs := range verbs[other.Verb].touches(f, other) {
			if slices.Contains(mine, theirs) {
				return false
			}
		}
	}
	return true
}

func first(_ *Fleet, s Step) []string { return []string{s.Word(0)} }

var (
	errNone  = errors.New("there is no such database")
	errState = errors.New("the database is not in a state for it")
	errRoom  = errors.New("there is no room for it")
	errSame  = errors.New("it is so already")
)

// change returns an apply that changes the database named by the first word, if that may be
// changed.
func change(may func(*Fleet, Database) bool, do func(d *Database, s Step) error) func(*Fleet, Step) error {
	return func(f *Fleet, s Step) error {
		d, ok := f.Databases[s.Word(0)]
		switch {
		case !ok:
			return errNone
		case !may(f, d):
			return errState
		}
		if do != nil {
			if err := do(&d, s); err != nil {
				return err
			}
		}
		f.Databases[d.Name] = d
		if !f.room(0) {
			return errRoom
		}
		return nil
	}
}

// one draws the name of a database that may be changed so, or "" if there is none.
func one(t *rapid.T, f *Fleet, may func(*Fleet, Database) bool) string {
	names := f.Names(func(d Database) bool { return may(f, d) })
	if len(names) == 0 {
		return ""
	}
	return evenly(t, names, "database")
}

// named returns a verb that takes only a database's name.
func named(may func(*Fleet, Database) bool, do func(d *Database, s Step) error) verb {
	return verb{
		draw:  func(t *rapid.T, f *Fleet) []string { return []string{one(t, f, may)} },
		apply: change(may, do),
	}
}

// with returns a verb that takes a database's name and one more word.
func with(may func(*Fleet, Database) bool, words []string, do func(d *Database, s Step) error) verb {
	return verb{
		draw: func(t *rapid.T, f *Fleet) []string {
			return []string{one(t, f, may), evenly(t, words, "word")}
		},
		apply: change(may, do),
	}
}

// number reads a word.
func number(to *int, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is no number above zero", text)
	}
	*to = n
	return nil
}

// other reads a word that has to change the number.
func other(to *int, text string) error {
	before := *to
	if err := number(to, text); err != nil {
		return err
	}
	if *to == before {
		return errSame
	}
	return nil
}

func runs(_ *Fleet, d Database) bool { return !d.Stopped }

// own reports whether it runs, and its data are its own.
func own(_ *Fleet, d Database) bool { return !d.Stopped && !d.Follows() }

// apart reports whether it neither follows nor is followed.
func apart(f *Fleet, d Database) bool { return !d.Follows() && len(f.Followers(d.Serial)) == 0 }

func among(words []string, word string) error {
	if !slices.Contains(words, word) {
		return fmt.Errorf("%q is none of %s", word, strings.Join(words, ", "))
	}
	return nil
}

// Verbs returns all verbs, sorted.
func Verbs() []string { return slices.Sorted(maps.Keys(verbs)) }

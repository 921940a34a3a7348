// Package result has what an experiment found, as it is kept: DIR/result.json, and DIR/series.csv with
// what was seen each second. Docs: docs/guide/lab-results.md.
package result

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/lab/stats"
	"howdah/internal/observe/environment"
	"howdah/internal/system/plainfile"
)

// Schema is the number of the form of result.json. A program that meets a larger one reads it not.
const Schema = 2

// Result is a whole run of an experiment.
type Result struct {
	Schema     int       `json:"schema"`
	Experiment string    `json:"experiment"`
	Quick      bool      `json:"quick"`
	Howdah     string    `json:"howdah"` // the release that measured
	Began      time.Time `json:"began"`
	Ended      time.Time `json:"ended,omitzero"` // zero: it goes on, or was broken off
	// Resumed are the moments at which it went on after it was broken off, or was to measure again: runs
	// before and after did not follow each other.
	Resumed []time.Time `json:"resumed,omitempty"`
	// PGBench is what the program says of its release.
	PGBench string `json:"pgbench,omitempty"`
	Target  Target `json:"target"`
	// Environment is what was measured, as it was after the first point; nil: it could not be read.
	Environment *environment.Environment `json:"environment,omitempty"`
	// Servers has each server that settings wanted, in the order in which they were measured. The first one
	// is Environment.
	Servers []Server `json:"servers,omitempty"`
	// Source is the text of the experiment, so that it can be run again.
	Source string  `json:"source"`
	Points []Point `json:"points"`
	// Settings sum the points of each setting up, and Comparisons compare them. They are there once
	// all points are.
	Settings    []Setting    `json:"settings,omitempty"`
	Comparisons []Comparison `json:"comparisons,omitempty"`
	Problems    []string     `json:"problems,omitempty"` // all that failed, in words
}

// Server is what some of the settings were measured on, as it was after the first point there.
type Server struct {
	Settings    []string                `json:"settings"` // their keys
	Environment environment.Environment `json:"environment"`
}

// Target is what was measured.
type Target struct {
	Name    string            `json:"name"` // host, port and database
	Kind    string            `json:"kind"` // howdah, or address
	Version string            `json:"version"`
	Machine map[string]string `json:"machine,omitempty"`
	// Parameters are of form 1: all settings that were not the default. Since form 2 an environment has them.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Point is one run of one setting.
type Point struct {
	Setting string             `json:"setting"` // its key
	Levels  map[string]any     `json:"levels"`
	Run     int                `json:"run"`
	Began   time.Time          `json:"began"`
	Took    float64            `json:"took"` // seconds
	Figures map[string]float64 `json:"figures"`
	// Commands are those that were run, without passwords.
	Commands []string `json:"commands,omitempty"`
	Errors   []string `json:"errors,omitempty"`
	// Marks say what was done when, and Faults which faults were made.
	Marks  []Mark  `json:"marks,omitempty"`
	Faults []Fault `json:"faults,omitempty"`
	// Observed has what was seen meanwhile: one for each step that made a load.
	Observed []Observation `json:"observed,omitempty"`
	// Struck says why the point does not count; "": it does.
	Struck string `json:"struck,omitempty"`
	// Again says that it is struck, and that another point is measured in its place.
	Again bool `json:"again,omitempty"`
}

// Setting has the figures of all runs of a setting that count.
type Setting struct {
	Setting string                   `json:"setting"`
	Levels  map[string]any           `json:"levels"`
	Figures map[string]stats.Summary `json:"figures"`
	// Limits says what limited each step that was observed.
	Limits []Limit `json:"limits,omitempty"`
}

// Comparison compares two settings that differ in one factor.
type Comparison struct {
	Factor string `json:"factor"`
	Figure string `json:"figure"`
	Base   string `json:"base"`  // key of the setting
	Other  string `json:"other"` // key of the setting
	Less   bool   `json:"less,omitempty"`
	// Figures compares the runs of the two.
	Figures stats.Comparison `json:"figures"`
}

// Tick is a row of series.csv: what was seen of a point in a second.
type Tick struct {
	Point int // its number in Result.Points, from 0 on
	At    time.Time
	Name  string
	Value float64
}

// The files of a result.
const (
	FileName   = "result.json"
	SeriesName = "series.csv"
)

var (
	// ErrNewer says that a result is of a newer release.
	ErrNewer = errors.New("this result is of a newer release of howdah")
	// ErrOlder says that a result is of an older form. It can be read, but not be gone on with.
	ErrOlder = errors.New("this result is of an older release of howdah, which observed other things: its report can be read, but the run cannot go on")
)

// Write keeps a result, whole or not at all.
func Write(dir string, r *Result) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := plainfile.Replace(filepath.Join(dir, FileName), append(text, '\n'), 0o644); err != nil { // others may read results
		return fmt.Errorf("keep a result: %w", err)
	}
	return nil
}

// Read reads a result.
func Read(dir string) (*Result, error) {
	text, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		return nil, fmt.Errorf("read a result: %w", err)
	}
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the result in %s: %w", dir, err)
	}
	if r.Schema > Schema {
		return nil, fmt.Errorf("read the result in %s: %w", dir, ErrNewer)
	}
	r.renew()
	return &r, nil
}

// renew adds to a result of an older form what follows from it. Its number stays.
func (r *Result) renew() {
	if r.Schema > 1 || r.Environment == nil || r.Environment.Client == nil {
		return
	}
	for n := range r.Points { // form 1 took that machine for the server's
		for i := range r.Points[n].Observed {
			r.Points[n].Observed[i].Elsewhere = true
		}
	}
}

// Append adds rows to the series of a result. What a broken run left of its last row is repaired.
func Append(dir string, ticks []Tick) error {
	path := filepath.Join(dir, SeriesName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o644) //nolint:gosec // others may read results
	if err != nil {
		return fmt.Errorf("keep a series: %w", err)
	}
	defer file.Close()
	size, err := wholeRows(file)
	if err == nil {
		_, err = file.Seek(size, 0)
	}
	if err == nil {
		err = file.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("keep a series: %w", err)
	}
	rows := csv.NewWriter(file)
	if size == 0 {
		_ = rows.Write([]string{"point", "unix_ms", "name", "value"})
	}
	for _, t := range ticks {
		_ = rows.Write([]string{strconv.Itoa(t.Point), strconv.FormatInt(t.At.UnixMilli(), 10), t.Name, strconv.FormatFloat(t.Value, 'g', 10, 64)})
	}
	if rows.Flush(); rows.Error() != nil {
		return fmt.Errorf("keep a series: %w", rows.Error())
	}
	return nil
}

// Cut takes rows away that are of no point of a result: those that were kept just before a run was killed,
// whose point is measured again. points is how many points there are.
func Cut(dir string, points int) error {
	file, err := os.OpenFile(filepath.Join(dir, SeriesName), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cut a series: %w", err)
	}
	defer file.Close()
	rows := csv.NewReader(file)
	rows.FieldsPerRecord = -1
	for {
		begin := rows.InputOffset()
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			if n, bad := strconv.Atoi(row[0]); bad != nil || n < points {
				continue // the header, or a row of a point that is there
			}
		}
		// Rows are in the order of their points. What cannot be read is the end of a row that broke off.
		if err := file.Truncate(begin); err != nil {
			return fmt.Errorf("cut a series: %w", err)
		}
		return nil
	}
}

// wholeRows returns where the last whole row ends.
func wholeRows(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	tail := make([]byte, min(info.Size(), 4096))
	if _, err := file.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return 0, err
	}
	for n, b := range slices.Backward(tail) {
		if b == '\n' {
			return info.Size() - int64(len(tail)-n-1), nil
		}
	}
	return 0, nil
}

// ReadSeries reads all rows.
func ReadSeries(dir string) ([]Tick, error) {
	file, err := os.Open(filepath.Join(dir, SeriesName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a series: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the series in %s: %w", dir, err)
	}
	var all []Tick
	for _, row := range rows[min(1, len(rows)):] {
		t := Tick{Name: row[2]}
		var ms int64
		var errs [3]error
		t.Point, errs[0] = strconv.Atoi(row[0])
		ms, errs[1] = strconv.ParseInt(row[1], 10, 64)
		t.Value, errs[2] = strconv.ParseFloat(row[3], 64)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("read the series in %s: %w", dir, err)
		}
		t.At = time.UnixMilli(ms).UTC()
		all = append(all, t)
	}
	return all, nil
}

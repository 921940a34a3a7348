package pgbench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Times are of the transactions of a run, in microseconds, by script, in the order of Options.Scripts.
type Times struct {
	Scripts []*hdrhistogram.Histogram
	All     *hdrhistogram.Histogram
	// Failed and Skipped are lines of transactions that have no time.
	Failed, Skipped int
}

// The times of a histogram: from a microsecond to a minute, to three digits.
const (
	shortest = 1
	longest  = 60_000_000
	digits   = 3
)

// ErrLog says that what pgbench wrote of a transaction is not understood.
var ErrLog = errors.New("a line of pgbench's log of transactions is not understood")

// ReadTimes reads what a run with Options.Sample has written to dir.
func ReadTimes(dir string, scripts int) (Times, error) {
	t := Times{All: hdrhistogram.New(shortest, longest, digits)}
	for range scripts {
		t.Scripts = append(t.Scripts, hdrhistogram.New(shortest, longest, digits))
	}
	files, err := filepath.Glob(filepath.Join(dir, logPrefix+".*"))
	if err != nil {
		return t, err
	}
	for _, path := range files {
		if err := t.readFile(path); err != nil {
			return t, fmt.Errorf("read %s: %w", filepath.Base(path), err)
		}
	}
	return t, nil
}

func (t *Times) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return t.read(file)
}

func (t *Times) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if err := t.add(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// add reads a line: client, number, microseconds, script, and when it ended.
func (t *Times) add(line string) error {
	fields := strings.Fields(line)
	if len(fields) < 6 {
		return fmt.Errorf("%w: %.100q", ErrLog, line)
	}
	switch fields[2] {
	case "skipped":
		t.Skipped++
		return nil
	case "failed", "serialization", "deadlock":
		t.Failed++
		return nil
	}
	took, err := strconv.ParseInt(fields[2], 10, 64)
	script, bad := strconv.Atoi(fields[3])
	if err != nil || bad != nil || script < 0 || script >= len(t.Scripts) {
		return fmt.Errorf("%w: %.100q", ErrLog, line)
	}
	took = min(max(took, shortest), longest)
	if err := t.All.RecordValue(took); err != nil {
		return err
	}
	return t.Scripts[script].RecordValue(took)
}

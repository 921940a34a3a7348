// Package audit is the record of every call of the API: who, what, when, from
// where, and how it ended; one JSON document a line, in files of the home that only
// its owner may read. Full files are renamed and the oldest deleted, so that the
// log has a largest size.
//
// Invariants: no record holds a secret (callers give parameters that may be shown);
// callers without a valid signature cannot push the records of others out: of
// theirs only a few a minute are kept, and the rest counted. Those who were sent the
// link that they call by have a rate of their account's: neither do strangers push
// their records out, nor they those of others.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	// File is the newest file's name; older ones are File with a suffix that sorts
	// by time.
	File = "audit.jsonl"
	// MaxFile is the size in bytes at which a file is full.
	MaxFile = 16 << 20
	// KeepFiles is how many full ones are kept.
	KeepFiles = 9
	// MaxText is how many bytes of a text callers may put into a record.
	MaxText = 2048
	// strangers is how many calls without a valid signature are recorded a minute.
	strangers = 30
	// guests is how many calls by links are recorded a minute, of each account.
	guests = 60
)

// Record is one call.
type Record struct {
	Time      time.Time `json:"time"` // when it arrived
	RequestID string    `json:"request_id"`
	// AccessKey is what the caller claims; it is proved unless Code is that of a
	// failed authentication. User is set once it is.
	AccessKey string `json:"access_key,omitempty"`
	User      string `json:"user,omitempty"` // ARN
	Account   string `json:"account,omitempty"`
	Region    string `json:"region,omitempty"`
	Service   string `json:"service,omitempty"`
	Action    string `json:"action,omitempty"`
	// Parameters are those that the model knows; sensitive ones are masked.
	Parameters map[string]string `json:"parameters,omitempty"`
	Source     string            `json:"source"` // address of the caller
	UserAgent  string            `json:"user_agent,omitempty"`
	Status     int               `json:"status"`         // of HTTP
	Code       string            `json:"code,omitempty"` // of the error
	Millis     int64             `json:"millis"`         // that it took
	// ByLink says that the caller proved, in place of a signature, to have been sent
	// the link of a subscription of Account.
	ByLink bool `json:"by_link,omitempty"`
	// Unrecorded counts calls without a valid signature, since the record before this
	// one, that were too many to record.
	Unrecorded int `json:"unrecorded,omitempty"`
}

// Log writes records. It is safe for concurrent use; a nil Log records nothing.
type Log struct {
	dir  string
	log  *slog.Logger
	max  int64
	keep int

	mu         sync.Mutex
	file       *os.File       // guarded by mu
	size       int64          // guarded by mu
	minute     time.Time      // guarded by mu: that is counted now
	heard      map[string]int // guarded by mu: calls in it by account; "": of strangers
	unrecorded int            // guarded by mu
	broken     bool           // guarded by mu: the last record could not be written
}

// Open makes a log in a directory. Nothing is read; Close ends it.
func Open(dir string, log *slog.Logger) *Log {
	return &Log{dir: dir, log: log, max: MaxFile, keep: KeepFiles}
}

// Write records a call. A record that cannot be written is told in the log of the
// process, once until it can be again: calls do not fail for it.
func (l *Log) Write(r Record) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.User == "" && l.tooMany(r) {
		l.unrecorded++
		return
	}
	r.Unrecorded, l.unrecorded = l.unrecorded, 0
	err := l.write(r)
	if err != nil && !l.broken {
		l.log.Error("audit log cannot be written", "error", err)
	}
	l.broken = err != nil
}

// tooMany must be called with mu held.
func (l *Log) tooMany(r Record) bool {
	if minute := r.Time.Truncate(time.Minute); !minute.Equal(l.minute) {
		l.minute, l.heard = minute, map[string]int{}
	}
	who, most := "", strangers
	if r.ByLink {
		who, most = r.Account, guests
	}
	l.heard[who]++
	return l.heard[who] > most
}

// write must be called with mu held.
func (l *Log) write(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	line = append(line, '\n')
	if l.file != nil && l.size > 0 && l.size+int64(len(line)) > l.max {
		if err := l.rotate(r.Time); err != nil {
			return err
		}
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	// One write, so that readers see whole lines.
	n, err := l.file.Write(line)
	l.size += int64(n)
	if err != nil {
		l.file.Close()
		l.file = nil
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func (l *Log) open() error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(l.dir, File), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("open audit log: %w", err)
	}
	l.file, l.size = f, info.Size()
	return l.endLine()
}

// endLine ends a line that a crash, or a full disk, has cut short.
func (l *Log) endLine() error {
	if l.size == 0 {
		return nil
	}
	var last [1]byte
	if _, err := l.file.ReadAt(last[:], l.size-1); err != nil || last[0] == '\n' {
		return nil //nolint:nilerr // then the next line is the one that is spoilt
	}
	n, err := l.file.Write([]byte{'\n'})
	l.size += int64(n)
	return err
}

// rotate must be called with mu held.
func (l *Log) rotate(now time.Time) error {
	l.file.Close()
	l.file = nil
	current := filepath.Join(l.dir, File)
	if err := os.Rename(current, current+"."+now.UTC().Format("20060102T150405.000000000")); err != nil {
		return fmt.Errorf("rotate audit log: %w", err)
	}
	old, err := older(l.dir)
	if err != nil {
		return err
	}
	for _, path := range old[:max(0, len(old)-l.keep)] {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// older are the full files, the oldest first.
func older(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, File+".*"))
	if err != nil {
		return nil, fmt.Errorf("list audit log: %w", err)
	}
	slices.Sort(files)
	return files, nil
}

// Close ends the log; a later Write opens it again.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

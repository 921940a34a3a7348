// Package audit is the record of every call of the API: who, what, when, from where, and how it
// ended. Each line is one JSON document, in files of the home that only its owner may read. There
// are separate files for calls that changed something, that only looked, and that were refused. A
// file that is full, or from a day that is over, is renamed. The oldest files are deleted, so that
// the log has a largest size.
//
// Invariants: no record holds a secret (callers give parameters that may be shown), and none is
// longer than MaxRecord. Only changes can push out records of changes. Callers without a valid
// signature cannot push out the records of others: only a few of their calls a minute are recorded,
// and the rest is counted. Callers by a link that they were sent have a rate of their account. Each
// account also has a rate for what it looks at, and for what is refused to it.
package audit

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// MaxFile is the size in bytes at which a file is full.
	MaxFile = 16 << 20
	// KeepBytes is how much is kept of the full files of each class, in bytes.
	KeepBytes = 9 * MaxFile
	// KeepFiles is how many full files are kept of each class: more than one for each day of a
	// year.
	KeepFiles = 400
	// MaxText is how many bytes of a text callers may put into a record.
	MaxText = 2048
	// strangers is how many calls without a valid signature are recorded a minute.
	strangers = 30
	// guests is how many calls by links are recorded a minute for each account.
	guests = 60
	// share is how many bytes a minute an account may write of what was refused to it, and of what
	// it looked at. If it changes more than that, parameters are left out.
	share = 256 << 10
)

// Record is one call.
type Record struct {
	Time      time.Time `json:"time"` // when it arrived
	RequestID string    `json:"request_id"`
	// AccessKey is what the caller claims. It is proved unless Code says that the authentication
	// failed. User is set once it is proved.
	AccessKey string `json:"access_key,omitempty"`
	User      string `json:"user,omitempty"` // ARN
	Account   string `json:"account,omitempty"`
	Region    string `json:"region,omitempty"`
	Service   string `json:"service,omitempty"`
	Action    string `json:"action,omitempty"`
	// Parameters are those that the model knows. Sensitive ones are masked.
	Parameters map[string]string `json:"parameters,omitempty"`
	Source     string            `json:"source"` // address of the caller
	UserAgent  string            `json:"user_agent,omitempty"`
	Status     int               `json:"status"`         // of HTTP
	Code       string            `json:"code,omitempty"` // of the error
	Millis     int64             `json:"millis"`         // that it took
	// ByLink says that the caller had no signature, but proved that it was sent the link of a
	// subscription of Account.
	ByLink bool `json:"by_link,omitempty"`
	// Unrecorded counts calls since the previous record that were too many to record.
	Unrecorded int `json:"unrecorded,omitempty"`
	// Cut counts parameters that were shortened or left out because of the record's size.
	Cut int `json:"cut,omitempty"`
}

// Log writes records. It is safe for concurrent use. A nil Log records nothing.
type Log struct {
	dir string
	log *slog.Logger

	mu         sync.Mutex
	files      map[Class]*file // guarded by mu
	minute     time.Time       // guarded by mu: that is counted now
	heard      map[string]int  // guarded by mu: calls in it by account; "": of strangers
	written    map[string]int  // guarded by mu: bytes in it by class and account
	unrecorded int             // guarded by mu
	broken     bool            // guarded by mu: the last record could not be written
}

// Open returns a log in a directory. It reads nothing. Close ends it.
func Open(dir string, log *slog.Logger) *Log {
	l := &Log{dir: dir, log: log, files: map[Class]*file{}}
	for _, c := range classes {
		l.files[c] = &file{dir: dir, name: string(c), max: MaxFile, keepBytes: KeepBytes, keepFiles: KeepFiles}
	}
	return l
}

// Write records a call. If a record cannot be written, the log of the process says so, once until
// records can be written again. Calls do not fail because of that.
func (l *Log) Write(r Record) {
	if l == nil {
		return
	}
	r = capped(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if minute := r.Time.Truncate(time.Minute); !minute.Equal(l.minute) {
		l.minute, l.heard, l.written = minute, map[string]int{}, map[string]int{}
	}
	class := classOf(r)
	bounded := class == Looked || class == Refused
	if r.User == "" && l.tooMany(r) || r.User != "" && bounded && l.tooMuch(class, r, size(r)) {
		l.unrecorded++
		return
	}
	if class == Changed && l.tooMuch(class, r, size(r)) {
		r.Cut, r.Parameters = r.Cut+len(r.Parameters), nil
	}
	r.Unrecorded, l.unrecorded = l.unrecorded, 0
	err := l.write(class, r)
	if err != nil && !l.broken {
		l.log.Error("audit log cannot be written", "error", err)
	}
	l.broken = err != nil
}

// tooMany reports whether a call is not to be recorded. The caller holds mu.
func (l *Log) tooMany(r Record) bool {
	who, most := "", strangers
	if r.ByLink {
		who, most = r.Account, guests
	}
	l.heard[who]++
	return l.heard[who] > most
}

// tooMuch reports whether a record has too many bytes. What is too much is not counted. The caller
// holds mu.
func (l *Log) tooMuch(class Class, r Record, bytes int) bool {
	who := string(class) + " " + r.Account
	if l.written[who]+bytes > share {
		return true
	}
	l.written[who] += bytes
	return false
}

// write writes a record. The caller holds mu.
func (l *Log) write(class Class, r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	return l.files[class].write(append(line, '\n'), r.Time)
}

// Close ends the log. A later Write opens it again.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		f.close()
	}
}

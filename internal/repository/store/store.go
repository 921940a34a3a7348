// Package store keeps objects: in a directory, or in a bucket of an S3 server.
//
// Invariants: an object is whole, or it is not there, whenever whoever writes it dies. Once Put or
// Complete has returned, the object outlives the loss of power. A directory follows no link, and
// nothing outside of it is read or written, whatever a key says.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Kinds of errors, which callers tell apart with errors.Is. What has none of them is unexpected.
var (
	// ErrNotFound says that there is no such object, or no such upload.
	ErrNotFound = errors.New("there is no such object")
	// ErrFull says that there is no room, or that a quota is used up.
	ErrFull = errors.New("the repository is full")
	// ErrReadOnly says that nothing can be written, or that we are not allowed to.
	ErrReadOnly = errors.New("the repository cannot be written to")
	// ErrAway says that the repository cannot be reached, or lets us in no more.
	ErrAway = errors.New("the repository is away")
	// ErrName says that no object can have this name here: it is malformed, too long, or a part of
	// it is the name of another object.
	ErrName = errors.New("no object can have this name")
	// ErrPart says that the parts that an object should be made of are not those that were sent.
	ErrPart = errors.New("the parts are not those that were sent")
)

// Limits that every store has.
const (
	// MaxKey is the length of the longest key, MaxName that of one part of it, in bytes.
	MaxKey  = 1024
	MaxName = 255
	// MaxParts is how many parts an upload may have.
	MaxParts = 10000
	// MaxList is how many entries one list has at most.
	MaxList = 1000
)

// own is the directory of ours in a repository, which no key can name.
const own = ".howdah"

// Object is what is known of an object without reading it.
type Object struct {
	Key  string
	Size int64
	// Modified is when it was written.
	Modified time.Time
	// ETag changes with the content. It has no quotation marks, and is no hash of the content.
	ETag string
}

// Query says which objects to list.
type Query struct {
	Prefix string
	// After is the key or the folded prefix after which the list begins, or "".
	After string
	// Fold lists all keys that have the same text up to the next slash after Prefix as that text.
	Fold bool
	// Max is how many entries there may be: 1 to MaxList.
	Max int
}

// Page is a part of a list, in the order of the bytes of keys and prefixes.
type Page struct {
	Objects []Object
	// Prefixes has what was folded. Each ends in a slash.
	Prefixes []string
	// Next is the After of the next page, or "" at the end.
	Next string
}

// Part is a part of an upload.
type Part struct {
	Number int // 1 to MaxParts
	Size   int64
	ETag   string
}

// Objects is where objects are. All methods may be called at the same time. Keys have parts between
// slashes, as paths do: see CheckKey.
type Objects interface {
	// Put stores what body has until io.EOF, in the place of the object that has the key. If body
	// ends with another error, Put returns that one and stores nothing.
	Put(ctx context.Context, key string, body io.Reader) (Object, error)
	// Get reads length bytes from offset on, or less if there is less; -1: all. The caller closes
	// what it reads from. What it reads is one object, also if that is replaced or deleted now.
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Object, error)
	Head(ctx context.Context, key string) (Object, error)
	List(ctx context.Context, query Query) (Page, error)
	// Delete deletes objects. That one is not there is no error. After an error some are deleted.
	Delete(ctx context.Context, keys ...string) error
}

// Uploads makes objects of parts that come one by one, in any order, several at the same time.
type Uploads interface {
	// Begin returns the id of a new upload.
	Begin(ctx context.Context, key string) (id string, err error)
	// Part stores a part, in the place of the part that has the number.
	Part(ctx context.Context, key, id string, number int, body Body) (Part, error)
	// Complete makes the object of these parts, which are sorted by number, and forgets the upload.
	// Of the parts it looks at Number and ETag.
	Complete(ctx context.Context, key, id string, parts []Part) (Object, error)
	// Abort forgets an upload and its parts.
	Abort(ctx context.Context, key, id string) error
	// Sweep removes what was begun before that time and is not whole: of uploads that were given up
	// and of processes that were killed.
	Sweep(ctx context.Context, before time.Time) error
}

// Body is the content of a part, with its length if that is known before; -1: it is not.
type Body struct {
	io.Reader
	Length int64
}

// Store keeps objects.
type Store interface {
	Objects
	Uploads
}

// CheckKey returns ErrName, with a reason, for what no object is called in any store: a key that is
// longer than MaxKey, is no UTF-8, has control characters, or parts that are empty, ".", "..",
// ".howdah", or longer than MaxName.
func CheckKey(key string) error {
	if err := checkText(key); err != nil {
		return err
	}
	for part := range strings.SplitSeq(key, "/") {
		switch {
		case part == "" || part == "." || part == ".." || part == own:
			return fmt.Errorf("%w: %.80q has the part %q", ErrName, key, part)
		case len(part) > MaxName:
			return fmt.Errorf("%w: a part of %.80q… is longer than %d bytes", ErrName, key, MaxName)
		}
	}
	return nil
}

// checkText checks what holds for prefixes, too.
func checkText(key string) error {
	switch {
	case len(key) > MaxKey:
		return fmt.Errorf("%w: %.80q… is longer than %d bytes", ErrName, key, MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: %.80q is no UTF-8", ErrName, key)
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffe' || r == '\uffff' }):
		return fmt.Errorf("%w: %.80q has control characters", ErrName, key)
	}
	return nil
}

// checkKeys checks all of them.
func checkKeys(keys []string) error {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	return nil
}

func checkParts(parts []Part) error {
	if len(parts) == 0 || len(parts) > MaxParts {
		return fmt.Errorf("%w: there are %d", ErrPart, len(parts))
	}
	last := 0
	for _, part := range parts {
		if part.Number <= last || part.Number > MaxParts {
			return fmt.Errorf("%w: part %d follows part %d", ErrPart, part.Number, last)
		}
		last = part.Number
	}
	return nil
}

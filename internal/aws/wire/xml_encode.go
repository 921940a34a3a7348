package wire

import (
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"howdah/api"
)

// timeLayout is how the services write times, always in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z"

// buffers holds the memory of documents between requests.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// largestKept is the largest buffer that goes back to the pool, so that one
// portion of a log does not hold memory for long. A page of 100 instances fits.
const largestKept = 4 << 20

// EncodeResult writes the answer of an action as an XML document. out is the
// action's output structure, and nil for a void action; any other type is
// ErrShape. Nil members are left out, empty lists become empty elements, times
// are cut to milliseconds. Nothing is written unless the document is complete.
//
// Characters that XML 1.0 cannot hold, such as the control characters that a
// log file may contain, become U+FFFD, and so do bytes that are not UTF-8: the
// reader sees that something was there, and every other character arrives.
func EncodeResult(w io.Writer, action, requestID string, out any) error {
	a, s, err := findAction(action, out)
	if err != nil {
		return err
	}
	buffer := buffers.Get().(*[]byte)
	b := (*buffer)[:0]
	b = append(b, "<"...)
	b = append(b, action...)
	b = append(b, `Response xmlns="`...)
	b = append(b, s.XMLNS...)
	b = append(b, `">`...)
	if s.Protocol == api.EC2 {
		b = appendElement(b, "requestId", requestID)
	}
	if out != nil {
		if b, err = appendOutput(b, a.Wrapper, out); err != nil {
			return fmt.Errorf("encode the answer of %s: %w", action, err)
		}
	}
	if s.Protocol == api.Query {
		b = append(b, "<ResponseMetadata>"...)
		b = appendElement(b, "RequestId", requestID)
		b = append(b, "</ResponseMetadata>"...)
	}
	b = append(append(append(b, "</"...), action...), "Response>"...)
	_, err = w.Write(b)
	if cap(b) <= largestKept {
		*buffer = b
		buffers.Put(buffer)
	}
	return err
}

func appendOutput(b []byte, wrapper string, out any) ([]byte, error) {
	v, err := structOf(out)
	if err != nil {
		return b, err
	}
	if wrapper == "" {
		return appendStruct(b, v)
	}
	b = append(append(append(b, '<'), wrapper...), '>')
	if b, err = appendStruct(b, v); err != nil {
		return b, err
	}
	return append(append(append(b, "</"...), wrapper...), '>'), nil
}

func appendStruct(b []byte, v reflect.Value) ([]byte, error) {
	p := planOf(v.Type())
	for i := range p.fields {
		f := &p.fields[i]
		value := v.Field(f.index)
		if value.IsNil() {
			continue
		}
		before := len(b)
		b = append(b, f.start...)
		inside := len(b)
		var err error
		if b, err = appendMember(b, f, value); err != nil {
			return b, fmt.Errorf("member %s: %w", f.Name, err)
		}
		if len(b) == inside {
			b = append(b[:before], f.empty...)
		} else {
			b = append(b, f.end...)
		}
	}
	return b, nil
}

func appendMember(b []byte, f *field, v reflect.Value) ([]byte, error) {
	switch f.kind {
	case kindStruct:
		return appendStruct(b, v.Elem())
	case kindStructs:
		return appendStructs(b, f, v)
	case kindStrings:
		for i := range v.Len() {
			b = append(b, f.elemStart...)
			b = appendText(b, v.Index(i).String())
			b = append(b, f.elemEnd...)
		}
		return b, nil
	case kindMap:
		return appendEntries(b, v.Interface().(map[string]string)), nil
	default:
		return appendScalar(b, f, v.Elem())
	}
}

func appendStructs(b []byte, f *field, v reflect.Value) ([]byte, error) {
	for i := range v.Len() {
		before := len(b)
		b = append(b, f.elemStart...)
		inside := len(b)
		var err error
		if b, err = appendStruct(b, v.Index(i)); err != nil {
			return b, err
		}
		if len(b) == inside {
			b = append(b[:before], f.elemEmpty...)
		} else {
			b = append(b, f.elemEnd...)
		}
	}
	return b, nil
}

func appendEntries(b []byte, entries map[string]string) []byte {
	for _, key := range sortedKeys(entries) {
		b = append(b, "<entry>"...)
		b = appendElement(b, "key", key)
		b = appendElement(b, "value", entries[key])
		b = append(b, "</entry>"...)
	}
	return b
}

func sortedKeys(entries map[string]string) []string { return slices.Sorted(maps.Keys(entries)) }

// appendScalar refuses what the protocol cannot write and a client could not
// read: it would come from a mistake of ours, and must not pass for a value.
func appendScalar(b []byte, f *field, v reflect.Value) ([]byte, error) {
	switch f.kind {
	case kindInt:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case kindFloat:
		if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			return b, fmt.Errorf("%v is not a finite number: %w", x, ErrShape)
		}
		return strconv.AppendFloat(b, v.Float(), 'f', -1, 64), nil
	case kindBool:
		return strconv.AppendBool(b, v.Bool()), nil
	case kindTime:
		t := v.Addr().Interface().(*time.Time).UTC()
		if !writable(t) {
			return b, fmt.Errorf("year %d has not four digits: %w", t.Year(), ErrShape)
		}
		return t.AppendFormat(b, timeLayout), nil
	default:
		return appendText(b, v.String()), nil
	}
}

func appendElement(b []byte, name, text string) []byte {
	b = append(append(append(b, '<'), name...), '>')
	b = appendText(b, text)
	return append(append(append(b, "</"...), name...), '>')
}

// appendText appends s as the content of an element. A carriage return is
// written as a reference because parsers turn a plain one into a line feed.
func appendText(b []byte, s string) []byte {
	done := 0
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c < utf8.RuneSelf && c != '&' && c != '<' && c != '>' {
			i++
			continue
		}
		replacement, width := escape(s[i:])
		if replacement != "" {
			b = append(append(b, s[done:i]...), replacement...)
			done = i + width
		}
		i += width
	}
	return append(b, s[done:]...)
}

// escape returns how the first character of s, which is none of the plain ones,
// is written, "" for as it is, and its width in bytes.
func escape(s string) (replacement string, width int) {
	const unwritable = "\uFFFD"
	c := s[0]
	switch {
	case c == '&':
		return "&amp;", 1
	case c == '<':
		return "&lt;", 1
	case c == '>':
		return "&gt;", 1
	case c == '\r':
		return "&#xD;", 1
	case c == '\t' || c == '\n':
		return "", 1
	case c < ' ':
		return unwritable, 1
	}
	r, width := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && width == 1 || r == 0xFFFE || r == 0xFFFF {
		return unwritable, width
	}
	return "", width
}

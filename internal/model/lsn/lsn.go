// Package lsn reads, writes and compares WAL positions.
package lsn

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a position in the write-ahead log, in bytes.
type LSN uint64

// Parse reads PostgreSQL's text form, such as "16/B374D848".
func Parse(text string) (LSN, error) {
	high, low, ok := strings.Cut(text, "/")
	if !ok {
		return 0, fmt.Errorf("%q is no WAL position", text)
	}
	h, err := strconv.ParseUint(high, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no WAL position: %w", text, err)
	}
	l, err := strconv.ParseUint(low, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no WAL position: %w", text, err)
	}
	return LSN(h<<32 | l), nil
}

func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l)) }

// MarshalText makes an LSN readable in JSON.
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (l *LSN) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	*l = parsed
	return err
}

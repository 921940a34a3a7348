package load

import (
	"encoding/binary"
	"time"
)

// encoder writes rows of COPY's binary format.
type encoder struct {
	out  []byte
	text []byte // room for the text that is drawn next
}

// The format's header: its signature, no flags, no extension. Its end is a row with -1 fields.
var (
	header  = []byte("PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00")
	trailer = []byte{0xff, 0xff}
)

func (e *encoder) row(fields int) {
	e.out = binary.BigEndian.AppendUint16(e.out, uint16(fields))
}

func (e *encoder) size(n int) { e.out = binary.BigEndian.AppendUint32(e.out, uint32(n)) }

func (e *encoder) null() { e.out = append(e.out, 0xff, 0xff, 0xff, 0xff) }

func (e *encoder) int4(n int) {
	e.size(4)
	e.out = binary.BigEndian.AppendUint32(e.out, uint32(int32(n)))
}

func (e *encoder) int2(n int) {
	e.size(2)
	e.out = binary.BigEndian.AppendUint16(e.out, uint16(int16(n)))
}

func (e *encoder) string(s string) {
	e.size(len(s))
	e.out = append(e.out, s...)
}

func (e *encoder) bytes(b []byte) {
	e.size(len(b))
	e.out = append(e.out, b...)
}

// timestamp writes microseconds since the year 2000, as the server counts.
func (e *encoder) timestamp(at int64) {
	e.size(8)
	e.out = binary.BigEndian.AppendUint64(e.out, uint64(at))
}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func microseconds(at time.Time) int64 { return at.Sub(epoch).Microseconds() }

// What a numeric consists of: digits of base 10000, of which weight+1 are before the point.
const (
	digitBase    = 10000
	wholeDigits  = 2
	signNegative = 0x4000
)

// cents writes a numeric with two digits after the point.
func (e *encoder) cents(n int) { e.numeric(n, 100, 2) }

// tenThousandths writes a numeric with four digits after the point.
func (e *encoder) tenThousandths(n int) { e.numeric(n, digitBase, 4) }

// numeric writes n/unit. Less than 100 million must be before the point. The server strips zeros.
func (e *encoder) numeric(n, unit, scale int) {
	sign := uint16(0)
	if n < 0 {
		n, sign = -n, signNegative
	}
	whole, rest := n/unit, n%unit*(digitBase/unit)
	e.size(2 * (4 + wholeDigits + 1))
	for _, word := range []uint16{
		wholeDigits + 1, wholeDigits - 1, sign, uint16(scale),
		uint16(whole / digitBase), uint16(whole % digitBase), uint16(rest),
	} {
		e.out = binary.BigEndian.AppendUint16(e.out, word)
	}
}

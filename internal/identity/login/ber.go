package login

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// These are the few parts of LDAP's encoding (RFC 4511, in BER) that a simple bind needs.
const (
	tagInteger  = 0x02
	tagOctets   = 0x04
	tagEnum     = 0x0a
	tagSequence = 0x30
	tagBind     = 0x60 // [APPLICATION 0], constructed
	tagBindDone = 0x61 // [APPLICATION 1], constructed
	tagUnbind   = 0x42 // [APPLICATION 2], primitive
	tagSimple   = 0x80 // [0], primitive
)

// Result codes of a bind.
const (
	resultSuccess     = 0
	resultProtocol    = 2
	resultAuthMethod  = 7
	resultCredentials = 49
	resultUnavailable = 52
)

// maxMessage bounds a message, in bytes. A token of an SDK has some hundred bytes. One with a
// session has some thousand.
const maxMessage = 32 << 10

var errEncoding = errors.New("not the encoding of LDAP")

// element is a tag with its contents.
type element struct {
	tag  byte
	body []byte
}

// readMessage reads one message.
func readMessage(r *bufio.Reader) (element, error) {
	tag, err := r.ReadByte()
	if err != nil {
		return element{}, err
	}
	length, err := readLength(r)
	if err != nil {
		return element{}, err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return element{}, err
	}
	return element{tag, body}, nil
}

// readLength reads a length in the short form, or in the long one of up to four
// bytes.
func readLength(r io.ByteReader) (int, error) {
	first, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	if first < 0x80 {
		return int(first), nil
	}
	count := int(first & 0x7f)
	if count == 0 || count > 4 {
		return 0, fmt.Errorf("%w: a length of %d bytes", errEncoding, count)
	}
	length := 0
	for range count {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		length = length<<8 | int(b)
	}
	if length > maxMessage {
		return 0, fmt.Errorf("%w: %d bytes are too many", errEncoding, length)
	}
	return length, nil
}

// bytesOf reads bytes out of a slice.
type bytesOf struct{ left []byte }

func (b *bytesOf) ReadByte() (byte, error) {
	if len(b.left) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	first := b.left[0]
	b.left = b.left[1:]
	return first, nil
}

// next returns the next element, which must have this tag. 0 stands for any tag.
func (b *bytesOf) next(tag byte) (element, error) {
	got, err := b.ReadByte()
	if err != nil {
		return element{}, err
	}
	length, err := readLength(b)
	if err != nil {
		return element{}, err
	}
	if tag != 0 && got != tag || length > len(b.left) {
		return element{}, errEncoding
	}
	body := b.left[:length]
	b.left = b.left[length:]
	return element{got, body}, nil
}

// encode appends an element.
func encode(to []byte, tag byte, body []byte) []byte {
	to = append(to, tag)
	switch n := len(body); {
	case n < 0x80:
		to = append(to, byte(n))
	case n < 0x100:
		to = append(to, 0x81, byte(n))
	default:
		to = append(to, 0x82, byte(n>>8), byte(n))
	}
	return append(to, body...)
}

package gateway

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"

	"howdah/internal/identity/signature"
)

const (
	// maxLine is the length of the longest line between chunks, and maxTrailers how many lines
	// there may be after the last one.
	maxLine     = 1 << 10
	maxTrailers = 8
	chunkBuffer = 64 << 10
)

var errChunk = &refusal{http.StatusBadRequest, "IncompleteBody", "The chunks of the body are malformed."}

// chunks reads a body of the encoding aws-chunked: lines SIZE;chunk-signature=…, each followed by so
// many bytes, until a chunk of size 0, then trailers. Each signature covers the one before it.
type chunks struct {
	src    *bufio.Reader
	left   int64 // of this chunk
	inside bool  // a chunk has begun, and its end was not read
	last   bool

	// key is nil if chunks are not signed.
	key       []byte
	claim     claim
	before    string // the signature before
	announced string // the signature of this chunk
	chunk     hash.Hash

	// trailer is the name of the trailer with the checksum, or "".
	trailer string
	sum     hash.Hash
}

func newChunks(r *http.Request, c claim, key func() []byte) *chunks {
	d := &chunks{src: bufio.NewReaderSize(r.Body, chunkBuffer), claim: c, before: c.signature}
	if c.payload != chunkedUnsigned {
		d.key, d.chunk = key(), sha256.New()
	}
	return d
}

// line reads a line without its end.
func (d *chunks) line() (string, error) {
	var line []byte
	for {
		c, err := d.src.ReadByte()
		if errors.Is(err, io.EOF) {
			return "", io.ErrUnexpectedEOF
		}
		if err != nil {
			return "", err
		}
		if c == '\n' {
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		if line = append(line, c); len(line) > maxLine {
			return "", errChunk
		}
	}
}

// begin reads the line before a chunk.
func (d *chunks) begin() error {
	line, err := d.line()
	if err != nil {
		return err
	}
	size, extension, _ := strings.Cut(line, ";")
	length, err := strconv.ParseUint(size, 16, 62)
	if err != nil {
		return errChunk
	}
	if d.key != nil {
		announced, ok := strings.CutPrefix(extension, "chunk-signature=")
		if !ok {
			return errChunk
		}
		d.announced = announced
		d.chunk.Reset()
	}
	d.left, d.inside = int64(length), true
	if length == 0 {
		d.last = true
		return d.checkSignature()
	}
	return nil
}

func (d *chunks) Read(p []byte) (int, error) {
	if d.last {
		return 0, io.EOF
	}
	if !d.inside {
		if err := d.begin(); err != nil {
			return 0, err
		}
		if d.last {
			return 0, io.EOF
		}
	}
	n, err := d.src.Read(p[:min(int64(len(p)), d.left)])
	d.left -= int64(n)
	if d.key != nil {
		d.chunk.Write(p[:n])
	}
	if d.sum != nil {
		d.sum.Write(p[:n])
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && d.left == 0 {
		err = d.endChunk()
	}
	return n, err
}

func (d *chunks) endChunk() error {
	d.inside = false
	if line, err := d.line(); err != nil || line != "" {
		return errors.Join(err, errChunk)
	}
	return d.checkSignature()
}

// checkSignature checks the signature of a chunk that was read.
func (d *chunks) checkSignature() error {
	if d.key == nil {
		return nil
	}
	return d.check(signature.Algorithm+"-PAYLOAD", emptyHash+"\n"+hex.EncodeToString(d.chunk.Sum(nil)), d.announced)
}

func (d *chunks) check(kind, text, announced string) error {
	toSign := kind + "\n" + d.claim.at.Format(signature.TimeLayout) + "\n" + d.claim.scope.String() + "\n" + d.before + "\n" + text
	want := signature.Sign(d.key, toSign)
	if subtle.ConstantTimeCompare([]byte(want), []byte(announced)) != 1 {
		return errSignature
	}
	d.before = want
	return nil
}

// finish reads what comes after the last byte of the body, and checks it.
func (d *chunks) finish() error {
	if !d.last {
		if err := d.begin(); err != nil {
			return err
		}
	}
	if !d.last {
		return errChunk // there is more than was said
	}
	trailers := map[string]string{}
	for range maxTrailers {
		line, err := d.line()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			line, err = "", nil // some clients leave out the last empty line
		}
		if err != nil {
			return err
		}
		if line == "" {
			return d.checkTrailers(trailers)
		}
		name, value, _ := strings.Cut(line, ":")
		trailers[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	return errChunk
}

func (d *chunks) checkTrailers(trailers map[string]string) error {
	if d.claim.payload == chunkedTrailer {
		text := d.trailer + ":" + trailers[d.trailer] + "\n"
		if err := d.check(signature.Algorithm+"-TRAILER", signature.Hash([]byte(text)), trailers["x-amz-trailer-signature"]); err != nil {
			return err
		}
	}
	if d.trailer == "" {
		return nil
	}
	if base64.StdEncoding.EncodeToString(d.sum.Sum(nil)) != trailers[d.trailer] {
		return errDigest
	}
	return nil
}

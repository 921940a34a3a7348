package gateway

import (
	"bytes"
	"crypto/md5"  //nolint:gosec // S3's protocol has it
	"crypto/sha1" //nolint:gosec // S3's protocol has it
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"howdah/internal/identity/signature"
)

// What x-amz-content-sha256 may be instead of a hash. Clients leave the hash out only because TLS
// protects the body.
const (
	unsigned        = "UNSIGNED-PAYLOAD"
	chunkedUnsigned = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	chunkedSigned   = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	chunkedTrailer  = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
)

// check is a hash that a body must have.
type check struct {
	hash.Hash
	want    []byte
	refusal *refusal
}

// body reads what a client sent. It returns the last bytes only after it has found all to be right:
// whoever passes a body on cannot have passed on a whole one that is wrong.
type body struct {
	src    io.Reader
	length int64
	left   int64
	checks []check
	// chunks is set if the body comes in chunks.
	chunks *chunks
	end    error // what was returned last
}

// newBody returns the body of a request that was verified with that key.
func newBody(r *http.Request, c claim, key func() []byte, most int64) (*body, error) {
	inChunks := c.payload == chunkedUnsigned || c.payload == chunkedSigned || c.payload == chunkedTrailer
	if r.ContentLength < 0 && !inChunks {
		return nil, errLength
	}
	b := &body{src: r.Body, length: r.ContentLength}
	switch c.payload {
	case unsigned:
	case chunkedUnsigned, chunkedSigned, chunkedTrailer:
		length, err := strconv.ParseUint(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 62)
		if err != nil {
			return nil, errLength
		}
		b.length = int64(length)
		b.chunks = newChunks(r, c, key)
		b.src = b.chunks
	default:
		want, err := hex.DecodeString(c.payload)
		if err != nil || len(want) != sha256.Size {
			return nil, malformed("x-amz-content-sha256 must be a hash, or one of S3's words for a body without one.")
		}
		b.checks = append(b.checks, check{sha256.New(), want, errHash})
	}
	if b.length > most {
		return nil, errTooLarge
	}
	b.left = b.length
	return b, b.addChecks(r)
}

// sums has the checksums of S3's protocol, by the end of the header's name.
var sums = map[string]func() hash.Hash{
	"crc32":     func() hash.Hash { return crc32.NewIEEE() },
	"crc32c":    func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
	"crc64nvme": func() hash.Hash { return crc64.New(nvme) },
	"sha1":      sha1.New,
	"sha256":    sha256.New,
}

var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

const sumHeader = "x-amz-checksum-"

// addChecks adds the checksums of headers, and begins those of trailers.
func (b *body) addChecks(r *http.Request) error {
	if text := r.Header.Get("Content-Md5"); text != "" {
		want, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(want) != md5.Size {
			return &refusal{http.StatusBadRequest, "InvalidDigest", "Content-MD5 is no MD5 hash in Base64."}
		}
		b.checks = append(b.checks, check{md5.New(), want, errDigest})
	}
	for name, sum := range sums {
		text := r.Header.Get(sumHeader + name)
		if text == "" || name == "sha256" && len(b.checks) > 0 && text == base64.StdEncoding.EncodeToString(b.checks[0].want) {
			continue // it is checked already
		}
		want, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return malformed("%s%s is no checksum in Base64.", sumHeader, name)
		}
		b.checks = append(b.checks, check{sum(), want, errDigest})
	}
	trailer := r.Header.Get("X-Amz-Trailer")
	if trailer == "" || b.chunks == nil {
		return nil
	}
	name, ok := strings.CutPrefix(strings.ToLower(trailer), sumHeader)
	if !ok || sums[name] == nil {
		return notDone("the trailer " + trailer)
	}
	b.chunks.trailer = sumHeader + name
	b.chunks.sum = sums[name]()
	return nil
}

func (b *body) Read(p []byte) (int, error) {
	if b.end != nil {
		return 0, b.end
	}
	n := 0
	if b.left > 0 {
		n, b.end = b.src.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		for _, c := range b.checks {
			c.Write(p[:n])
		}
		b.end = reading(b.end)
	}
	if b.left > 0 {
		if errors.Is(b.end, io.EOF) {
			b.end = errIncomplete
		}
		return n, b.end
	}
	if b.end == nil || errors.Is(b.end, io.EOF) {
		b.end = b.finish()
	}
	if !errors.Is(b.end, io.EOF) {
		return 0, b.end
	}
	return n, io.EOF
}

// reading returns the refusal for a body that breaks off.
func reading(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlow
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errIncomplete
	}
	return err
}

// finish returns io.EOF if the body was right.
func (b *body) finish() error {
	if b.chunks != nil {
		if err := b.chunks.finish(); err != nil {
			return reading(err)
		}
	}
	for _, c := range b.checks {
		if !bytes.Equal(c.Sum(nil), c.want) {
			return c.refusal
		}
	}
	return io.EOF
}

// emptyHash is the hash of nothing.
var emptyHash = signature.Hash(nil)

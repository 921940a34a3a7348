package exchange

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Frames have a byte for the kind, four for the length of what follows, the highest first, and that. The
// other side is extensions/howdah/src/agent.c.
const (
	frameHead = 5
	maxFrame  = 64 << 10
	// withinFrame is how long a member may take for a frame that it has begun.
	withinFrame = 30 * time.Second
	// toRefuse is how long it may take to read why it is refused.
	toRefuse = 5 * time.Second
)

// request is the kind of frame that begins a conversation.
type request byte

const (
	export  request = 'E'
	imports request = 'I'
)

// The other kinds.
const (
	data    = 'd'
	end     = 'f'
	refused = 'e'
)

// wish is what a member asks for. The region is of no use: the role says for which region is signed.
type wish struct {
	kind         request
	bucket, file string
}

var (
	errTalk = errors.New("this is no request for an export or import")
	errGone = errors.New("the member has hung up")
)

// hungUp returns errGone with the reason. It is never io.EOF, which would say that all data came.
func hungUp(err error) error { return fmt.Errorf("%w: %s", errGone, err.Error()) }

// talk is a conversation with a server process of a member, or with whoever has its user. At any time
// one goroutine reads.
type talk struct {
	conn net.Conn
	buf  [frameHead + maxFrame]byte
	left []byte // of the newest frame of data
}

// frame reads a frame, within a time; 0: it may begin whenever. The content is good until the next one.
func (t *talk) frame(within time.Duration) (kind byte, content []byte, err error) {
	var begin time.Time
	if within > 0 {
		begin = time.Now().Add(within)
	}
	if err := t.conn.SetReadDeadline(begin); err != nil {
		return 0, nil, hungUp(err)
	}
	if within == 0 {
		within = withinFrame
	}
	head := t.buf[:frameHead]
	if _, err := io.ReadFull(t.conn, head[:1]); err != nil {
		return 0, nil, hungUp(err)
	}
	if err := t.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return 0, nil, hungUp(err)
	}
	if _, err := io.ReadFull(t.conn, head[1:]); err != nil {
		return 0, nil, hungUp(err)
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > maxFrame {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", errTalk, length)
	}
	content = t.buf[frameHead : frameHead+length]
	if _, err := io.ReadFull(t.conn, content); err != nil {
		return 0, nil, hungUp(err)
	}
	return head[0], content, nil
}

// wish reads what is wanted: a bucket, a file and a region, each with a zero at its end.
func (t *talk) wish(within time.Duration) (wish, error) {
	kind, content, err := t.frame(within)
	if err != nil {
		return wish{}, err
	}
	words := strings.Split(string(content), "\x00")
	if request(kind) != export && request(kind) != imports || len(words) != 4 || words[3] != "" || !utf8.Valid(content) {
		return wish{}, fmt.Errorf("%w: kind %q, %d words", errTalk, kind, len(words)-1)
	}
	return wish{request(kind), words[0], words[1]}, nil
}

// Read reads the data of an export. It returns io.EOF only after the member has said that this was all.
func (t *talk) Read(p []byte) (int, error) {
	for len(t.left) == 0 {
		kind, content, err := t.frame(0)
		switch {
		case err != nil:
			return 0, err
		case kind == end && len(content) == 0:
			return 0, io.EOF
		case kind != data:
			return 0, fmt.Errorf("%w: kind %q among data", errTalk, kind)
		}
		t.left = content
	}
	n := copy(p, t.left)
	t.left = t.left[n:]
	return n, nil
}

// hear calls gone when the member hangs up, or says something though it is not its turn. It returns at
// the latest when the connection is closed.
func (t *talk) hear(gone context.CancelCauseFunc) {
	_ = t.conn.SetReadDeadline(time.Time{})
	if _, err := t.conn.Read(make([]byte, 1)); err != nil {
		gone(errGone)
		return
	}
	gone(errTalk)
}

// write writes a frame. A member may take as long as it likes to read it.
func (t *talk) write(kind byte, content []byte) error {
	var head [frameHead]byte
	head[0] = kind
	binary.BigEndian.PutUint32(head[1:], uint32(len(content)))
	parts := net.Buffers{head[:], content}
	if _, err := parts.WriteTo(t.conn); err != nil {
		return hungUp(err)
	}
	return nil
}

// finish says that all is done.
func (t *talk) finish(size int64) error { return t.write(end, strconv.AppendInt(nil, size, 10)) }

// refuse says why something was not done.
func (t *talk) refuse(err error) {
	state, text := say(err)
	content := append([]byte(state), text...)
	content = bytes.ToValidUTF8(content[:min(len(content), 4<<10)], []byte("?"))
	_ = t.conn.SetDeadline(time.Now().Add(toRefuse))
	_ = t.write(refused, content)
}

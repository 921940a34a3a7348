package exchange

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/host/hostapi"
	"howdah/internal/model/member"
	"howdah/internal/testkit"
	"howdah/internal/testkit/s3test"
)

// site is a server with a bucket, and the socket of the member db-1.m1.
type site struct {
	*testing.T
	s3     *s3test.Server
	socket string
	server *Server
}

// newSite has the role open only what begins with own/.
func newSite(t *testing.T, s3 *s3test.Server, endpoint string, change func(*Config)) *site {
	t.Helper()
	config := Config{Log: slog.New(slog.DiscardHandler), Notes: t.TempDir(), Ask: func(_ context.Context, of, feature string) (member.Bucket, error) {
		if of != "db-1.m1" {
			return member.Bucket{}, errors.New("asked for another member")
		}
		if feature != member.Export && feature != member.Import {
			return member.Bucket{}, fmt.Errorf("call bucket: not allowed: %w: none for %s: %w", member.ErrNoRole, feature, hostapi.ErrRefused)
		}
		return member.Bucket{
			Role: "own", Endpoint: endpoint, Bucket: s3test.Bucket, Prefix: "own/", CA: s3.CA, AccessKey: s3test.AccessKey, Secret: s3test.Secret,
		}, nil
	}}
	if change != nil {
		change(&config)
	}
	s := &site{T: t, s3: s3, socket: filepath.Join(t.TempDir(), "db-1.m1"), server: New(config)}
	l, err := Listen(t.Context(), s.socket, os.Geteuid(), os.Getegid())
	s.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.server.Serve(ctx, l, "db-1.m1", os.Geteuid()) }()
	t.Cleanup(func() {
		cancel()
		s.must(<-done)
	})
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// caller is what a server process is to the agent.
type caller struct {
	*site
	net.Conn
}

func (s *site) dial() caller {
	s.Helper()
	conn, err := new(net.Dialer).DialContext(s.Context(), "unix", s.socket)
	s.must(err)
	s.Cleanup(func() { conn.Close() })
	return caller{s, conn}
}

func frameOf(kind byte, content string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(content))), content...)
}

// say sends frames. That the agent has hung up by then is seen by what it answers.
func (c caller) say(kind byte, content string) {
	c.Helper()
	_, _ = c.Write(frameOf(kind, content))
}

func (c caller) ask(kind request, words ...string) {
	c.say(byte(kind), strings.Join(words, "\x00")+"\x00")
}

// hears reads all frames up to the last one, and returns the data, and that one.
func (c caller) hears() (got []byte, last byte, text string) {
	c.Helper()
	for {
		head := make([]byte, frameHead)
		if _, err := io.ReadFull(c, head); err != nil {
			return got, 0, err.Error()
		}
		content := make([]byte, binary.BigEndian.Uint32(head[1:]))
		_, err := io.ReadFull(c, content)
		c.must(err)
		if head[0] != data {
			return got, head[0], string(content)
		}
		got = append(got, content...)
	}
}

// refusedWith checks that the agent says no, with a SQLSTATE and words.
func (c caller) refusedWith(what, state string, words ...string) {
	c.Helper()
	_, last, text := c.hears()
	if last != refused || !strings.HasPrefix(text, state) {
		c.Errorf("%s: %q %q, want %s", what, last, text, state)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			c.Errorf("%s: %q says nothing of %q", what, text, word)
		}
	}
	for _, secret := range []string{s3test.Secret, s3test.AccessKey, c.s3.Endpoint} {
		if strings.Contains(text, secret) {
			c.Errorf("%s: %q tells %s", what, text, secret)
		}
	}
}

func (s *site) files() (names []string) {
	s.Helper()
	top := filepath.Join(s.s3.Dir, s3test.Bucket)
	s.must(filepath.WalkDir(top, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, strings.TrimPrefix(path, top+"/"))
		}
		return err
	}))
	return names
}

func (s *site) idle() {
	s.Helper()
	testkit.Eventually(s.T, 10*time.Second, func() error {
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		if len(s.server.underWay) > 0 || s.server.kinds[export]+s.server.kinds[imports] > 0 {
			return fmt.Errorf("%v, %v", s.server.underWay, s.server.kinds)
		}
		return nil
	})
}

// What is exported is in the bucket as it was sent, be it small or in pieces, and comes back so.
func TestWhatIsExportedIsImportedAgain(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	s := newSite(t, s3, s3.Endpoint, nil)
	for name, size := range map[string]int{"empty": 0, "small": 1000, "pieces": 20 << 20} {
		content := make([]byte, size)
		_, _ = rand.Read(content)
		c := s.dial()
		c.ask(export, s3test.Bucket, "own/"+name, "eu-west-1")
		for part := range slices.Chunk(content, maxFrame) {
			c.say(data, string(part))
		}
		c.say(end, "")
		if _, last, text := c.hears(); last != end || text != fmt.Sprint(size) {
			t.Errorf("export of %s: %q %q", name, last, text)
		}
		stored, err := os.ReadFile(filepath.Join(s3.Dir, s3test.Bucket, "own", name))
		if err != nil || !bytes.Equal(stored, content) {
			t.Errorf("%s: %d bytes in the bucket, %v", name, len(stored), err)
		}
		c = s.dial()
		c.ask(imports, s3test.Bucket, "own/"+name, "")
		if got, last, text := c.hears(); last != end || text != fmt.Sprint(size) || !bytes.Equal(got, content) {
			t.Errorf("import of %s: %d bytes, %q %q", name, len(got), last, text)
		}
	}
	s.idle()
}

// Whoever has the member's user reaches nothing but what the role opens, and is told no secret.
func TestTheRoleDecides(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	s := newSite(t, s3, s3.Endpoint, nil)
	top := filepath.Join(s3.Dir, s3test.Bucket)
	s.must(os.MkdirAll(filepath.Join(s3.Dir, "others"), 0o755))
	s.must(os.WriteFile(filepath.Join(s3.Dir, "others", "x"), []byte("theirs"), 0o644))
	s.must(os.WriteFile(filepath.Join(top, "outside"), []byte("theirs"), 0o644))
	for _, kind := range []request{export, imports} {
		for name, tt := range map[string]struct {
			words []string
			state string
		}{
			"another bucket":             {[]string{"others", "own/x", ""}, "42501"},
			"a path of a bucket":         {[]string{s3test.Bucket + "/../others", "own/x", ""}, "42501"},
			"no bucket":                  {[]string{"", "own/x", ""}, "42501"},
			"a server for a bucket":      {[]string{"http://169.254.169.254/latest", "own/x", ""}, "42501"},
			"outside of the prefix":      {[]string{s3test.Bucket, "outside", ""}, "42501"},
			"a prefix that begins so":    {[]string{s3test.Bucket, "ownx", ""}, "42501"},
			"the way out of the prefix":  {[]string{s3test.Bucket, "own/../outside", ""}, "22023"},
			"the way out of the bucket":  {[]string{s3test.Bucket, "own/../../others/x", ""}, "22023"},
			"the prefix alone":           {[]string{s3test.Bucket, "own/", ""}, "22023"},
			"a name with a line":         {[]string{s3test.Bucket, "own/a\r\nHost: x", ""}, "22023"},
			"a name that is too long":    {[]string{s3test.Bucket, "own/" + strings.Repeat("a", 2000), ""}, "22023"},
			"a server in the region":     {[]string{s3test.Bucket, "own/../x", "http://169.254.169.254"}, "22023"},
			"one word too many":          {[]string{s3test.Bucket, "own/x", "", ""}, "08P01"},
			"one word too few":           {[]string{s3test.Bucket, "own/x"}, "08P01"},
			"a name that is no UTF-8":    {[]string{s3test.Bucket, "own/\xff", ""}, "08P01"},
			"nothing":                    {nil, "08P01"},
			"another place of the store": {[]string{s3test.Bucket, "own/.howdah/x", ""}, "22023"},
		} {
			c := s.dial()
			c.ask(kind, tt.words...)
			c.say(data, "mine")
			c.say(end, "")
			c.refusedWith(name, tt.state)
		}
	}
	c := s.dial()
	c.ask(imports, s3test.Bucket, "own/nothing", "")
	c.refusedWith("a file that is not there", "58P01", "no such file")
	if text, err := os.ReadFile(filepath.Join(top, "outside")); err != nil || string(text) != "theirs" {
		t.Errorf("outside has %q, %v", text, err)
	}
	if names := s.files(); len(names) != 1 {
		t.Errorf("the bucket has %v", names)
	}
	s.idle()
}

// A member that says garbage, or hangs up, leaves nothing behind, and keeps nobody from going on.
func TestGarbage(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	s := newSite(t, s3, s3.Endpoint, func(c *Config) { c.Request = 500 * time.Millisecond })
	for name, say := range map[string]func(caller){
		"nothing":              func(caller) {},
		"half a head":          func(c caller) { _, _ = c.Write([]byte{'E', 0}) },
		"noise":                func(c caller) { _, _ = io.CopyN(c, rand.Reader, 200<<10) },
		"a frame of gigabytes": func(c caller) { _, _ = c.Write([]byte{'E', 0xff, 0xff, 0xff, 0xff}) },
		"data first":           func(c caller) { c.say(data, "x") },
		"an error":             func(c caller) { c.say(refused, "00000x") },
	} {
		c := s.dial()
		say(c)
		if got, last, text := c.hears(); len(got) > 0 || last == end {
			t.Errorf("%s: %q %q", name, last, text)
		}
	}
	for name, say := range map[string]func(caller){
		"no end":                  func(c caller) { c.say(data, strings.Repeat("x", maxFrame)) },
		"no end of pieces":        func(c caller) { _, _ = c.Write(bytes.Repeat(frameOf(data, strings.Repeat("x", maxFrame)), 300)) },
		"half a frame":            func(c caller) { _, _ = c.Write(frameOf(data, "xyz")[:6]) },
		"a request among data":    func(c caller) { c.ask(export, s3test.Bucket, "own/other", "") },
		"an end with more behind": func(c caller) { c.say(end, "more") },
		"a frame that is too big": func(c caller) { c.say(data, strings.Repeat("x", maxFrame+1)) },
	} {
		c := s.dial()
		c.ask(export, s3test.Bucket, "own/garbage", "")
		say(c)
		s.must(c.Close())
		s.idle()
		if names := s.files(); len(names) != 0 {
			t.Errorf("%s: the bucket has %v", name, names)
		}
	}
	c := s.dial()
	c.ask(export, s3test.Bucket, "own/good", "")
	c.say(data, "good")
	c.say(end, "")
	if _, last, text := c.hears(); last != end {
		t.Errorf("after all that: %q %q", last, text)
	}
}

// A connection that ends is never taken for the end of the data, whenever it ends.
func TestAConnectionThatEndsIsNoEndOfData(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string][]byte{
		"at once": nil, "in a head": {'d', 0}, "after a head": {'d', 0, 0, 0, 9}, "in a frame": frameOf(data, "xyz")[:6], "after a frame": frameOf(data, "xyz"),
	} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Write(sent)
			_ = theirs.Close()
		}()
		text, err := io.ReadAll(&talk{conn: ours})
		if !errors.Is(err, errGone) || errors.Is(err, io.EOF) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// A server that says nothing ends the statement in time.
func TestAServerThatSaysNothing(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	link := s3.Link(t)
	s := newSite(t, s3, link.Endpoint, func(c *Config) { c.Patience = time.Second })
	pass := link.Hold()
	defer pass()
	for _, kind := range []request{export, imports} {
		c := s.dial()
		c.ask(kind, s3test.Bucket, "own/x", "")
		if kind == export {
			c.say(data, "x")
			c.say(end, "")
		}
		c.refusedWith(string(kind), "08006", "does not answer")
	}
	// Nothing is at the address.
	s = newSite(t, s3, "https://"+testkit.FreeAddr(t), func(c *Config) { c.Patience = time.Second })
	c := s.dial()
	c.ask(imports, s3test.Bucket, "own/x", "")
	c.refusedWith("nobody", "08006", "does not answer")
	s.idle()
}

// One member takes no more than its share, and others go on.
func TestHowManyTransfersThereAre(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	s := newSite(t, s3, s3.Endpoint, func(c *Config) { c.PerMember, c.Exports, c.Imports = 2, 3, 3 })
	var open []caller
	for range 2 {
		c := s.dial()
		c.ask(export, s3test.Bucket, "own/open", "")
		open = append(open, c)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		if n := s.server.underWay["db-1.m1"]; n != 2 {
			return fmt.Errorf("%d are under way", n)
		}
		return nil
	})
	c := s.dial()
	c.ask(imports, s3test.Bucket, "own/x", "")
	c.refusedWith("a third one", "53300", "try again")
	release, err := s.server.enter("db-2.m1", export)
	s.must(err)
	if _, err := s.server.enter("db-3.m1", export); !errors.Is(err, errBusy) {
		t.Errorf("a fourth export of the host: %v", err)
	}
	other, err := s.server.enter("db-3.m1", imports)
	s.must(err)
	other()
	release()
	for _, c := range open {
		s.must(c.Close())
	}
	s.idle()
}

// What no control plane allows is not done.
func TestWithoutARole(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	for name, tt := range map[string]struct {
		err   error
		state string
		text  string
	}{
		"no role":          {fmt.Errorf("call bucket: not allowed: %w: orders has none for s3Export: %w", member.ErrNoRole, hostapi.ErrRefused), "42501", "42501" + member.ErrNoRole.Error() + ": orders has none for s3Export"},
		"no control plane": {errors.New("dial tcp 10.0.0.1:8443: refused"), "08006", "08006no control plane says what the role of the database opens: try again"},
	} {
		s := newSite(t, s3, s3.Endpoint, func(c *Config) {
			c.Ask = func(context.Context, string, string) (member.Bucket, error) { return member.Bucket{}, tt.err }
		})
		c := s.dial()
		c.ask(export, s3test.Bucket, "own/x", "")
		if _, last, text := c.hears(); last != refused || text != tt.text {
			t.Errorf("%s: %q %q, want %q", name, last, text, tt.text)
		}
	}
}

// Nobody else than the member's user is answered.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	s := New(Config{Log: slog.New(slog.DiscardHandler), Ask: func(context.Context, string, string) (member.Bucket, error) {
		t.Error("a control plane was asked")
		return member.Bucket{}, errors.New("asked")
	}})
	path := filepath.Join(t.TempDir(), "m")
	l, err := Listen(t.Context(), path, os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, "db-1.m1", os.Geteuid()+1) }()
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write(frameOf('E', "b\x00own/x\x00\x00"))
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("it says %d bytes", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

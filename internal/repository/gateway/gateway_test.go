package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/signature"
	"howdah/internal/repository/store"
	"howdah/internal/testkit"
)

const (
	accessKey = "member-1"
	secret    = "the secret of a member"
)

// rig is a gateway with TLS before a store.
type rig struct {
	*Gateway
	url    string
	caPEM  []byte
	client *http.Client
	store  store.Store

	mu      sync.Mutex
	written []Object
	failed  []error
}

func newRig(t testing.TB, s store.Store, config Config) *rig {
	t.Helper()
	r := &rig{store: s}
	config.Written = func(o Object) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.written = append(r.written, o)
	}
	config.Failed = func(_ string, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed = append(r.failed, err)
	}
	r.Gateway = New(config)
	r.SetRepository("main", s)
	r.SetKey(accessKey, secret, []Grant{{Repository: "main", Database: "db-1"}, {Repository: "main", Database: "db-0", ReadOnly: true}})
	ca, err := certs.New("test")
	must(t, err)
	pair, err := ca.Issue(certs.Subject{CommonName: "gateway", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	must(t, err)
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	must(t, err)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	server := r.Server()
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(l, "", "") }()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pair.CAPEM)
	r.url, r.caPEM = "https://"+l.Addr().String(), pair.CAPEM
	r.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, WriteBufferSize: 256 << 10, ReadBufferSize: 256 << 10, MaxIdleConnsPerHost: 64,
	}}
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		server.Close()
		<-ended
	})
	return r
}

func directory(t testing.TB) *store.Directory {
	t.Helper()
	d, err := store.OpenDirectory(t.TempDir(), "")
	must(t, err)
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// request makes a request that is signed by the SDK's signer.
func (r *rig) request(t testing.TB, method, path string, body []byte, change ...func(*http.Request)) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, bytes.NewReader(body))
	must(t, err)
	req.Header.Set("X-Amz-Content-Sha256", signature.Hash(body))
	for _, f := range change {
		f(req)
	}
	sign(t, req, secret, time.Now())
	return req
}

func sign(t testing.TB, req *http.Request, secret string, at time.Time) {
	t.Helper()
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	creds := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}
	must(t, signer.SignHTTP(t.Context(), creds, req, req.Header.Get("X-Amz-Content-Sha256"), "s3", "us-east-1", at))
}

// answer returns the status and the body, as "404 NoSuchKey" if it is an error.
func (r *rig) answer(t testing.TB, req *http.Request) (status int, text string) {
	t.Helper()
	response, err := r.client.Do(req)
	must(t, err)
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode >= 300 {
		_, code, _ := strings.Cut(string(all), "<Code>")
		code, _, _ = strings.Cut(code, "</Code>")
		return response.StatusCode, code
	}
	return response.StatusCode, string(all)
}

func (r *rig) want(t *testing.T, want string, method, path string, body []byte, change ...func(*http.Request)) string {
	t.Helper()
	status, text := r.answer(t, r.request(t, method, path, body, change...))
	got := fmt.Sprint(status)
	if status >= 300 {
		got += " " + text
	}
	if strings.TrimSpace(got) != want {
		t.Errorf("%s %s: %q, want %q", method, path, got, want)
	}
	return text
}

func TestObjects(t *testing.T) {
	t.Parallel()
	r := newRig(t, directory(t), Config{})
	path := "/main/db-1/archive/a%20b+c%25/%C3%BC"
	r.want(t, "404 NoSuchKey", "GET", path, nil)
	r.want(t, "200", "PUT", path, []byte("0123456789"))
	if len(r.written) != 1 || r.written[0] != (Object{accessKey, "main", "db-1", "db-1/archive/a b+c%/ü", 10}) {
		t.Errorf("told of %+v", r.written)
	}
	if text := r.want(t, "200", "GET", path, nil); text != "0123456789" {
		t.Errorf("it is %q", text)
	}
	ranged := func(text string) func(*http.Request) { return func(q *http.Request) { q.Header.Set("Range", text) } }
	for text, want := range map[string]string{"bytes=2-4": "234", "bytes=7-": "789", "bytes=-2": "89", "bytes=5-500": "56789", "bytes=0-0": "0", "bytes=-20": "0123456789"} {
		if got := r.want(t, "206", "GET", path, nil, ranged(text)); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
	for _, text := range []string{"bytes=4-2", "lines=1-2", "bytes=1-2,4-5", "bytes=", "bytes=-0"} {
		if got := r.want(t, "200", "GET", path, nil, ranged(text)); got != "0123456789" {
			t.Errorf("%s: %q", text, got)
		}
	}
	r.want(t, "416 InvalidRange", "GET", path, nil, ranged("bytes=10-"))
	r.want(t, "200", "HEAD", path, nil)
	r.want(t, "404", "HEAD", path+"x", nil)
	r.want(t, "204", "DELETE", path, nil)
	r.want(t, "204", "DELETE", path, nil)
	r.want(t, "404 NoSuchKey", "GET", path, nil)
}

func TestOnlyWhatIsGranted(t *testing.T) {
	t.Parallel()
	s := directory(t)
	for _, key := range []string{"db-0/x", "db-1/x", "db-2/x", "db-10/x", "x", "db-1/howdah/marks.json"} {
		_, err := s.Put(t.Context(), key, strings.NewReader("x"))
		must(t, err)
	}
	r := newRig(t, s, Config{})
	r.SetRepository("other", s)
	deletes := func(keys ...string) []byte {
		return []byte("<Delete><Object><Key>" + strings.Join(keys, "</Key></Object><Object><Key>") + "</Key></Object></Delete>")
	}
	for _, c := range []struct{ want, method, path string }{
		{"200", "GET", "/main/db-0/x"},
		{"200", "GET", "/main/db-1/x"},
		{"200", "GET", "/main/db-1/howdah/marks.json"},
		{"403 AccessDenied", "PUT", "/main/db-1/howdah/marks.json"},
		{"403 AccessDenied", "DELETE", "/main/db-1/howdah/marks.json"},
		{"403 AccessDenied", "POST", "/main/db-1/howdah/x?uploads="},
		{"403 AccessDenied", "PUT", "/main/db-1/howdah"},
		{"403 AccessDenied", "PUT", "/main/db-0/x"},
		{"403 AccessDenied", "DELETE", "/main/db-0/x"},
		{"403 AccessDenied", "POST", "/main/db-0/y?uploads="},
		{"403 AccessDenied", "PUT", "/main/db-0/y?uploadId=0&partNumber=1"},
		{"403 AccessDenied", "GET", "/main/db-2/x"},
		{"403 AccessDenied", "GET", "/main/db-2/none"},
		{"403 AccessDenied", "GET", "/main/db-10/x"},
		{"403", "HEAD", "/main/db-2/x"},
		{"403 AccessDenied", "GET", "/main/x"},
		{"403 AccessDenied", "PUT", "/main/db-1"},
		{"403 AccessDenied", "GET", "/other/db-1/x"},
		{"403 AccessDenied", "GET", "/none/db-1/x"},
		{"403 AccessDenied", "GET", "/"},
		{"400 InvalidObjectName", "GET", "/main/db-1/../db-2/x"},
		{"400 InvalidObjectName", "GET", "/main/db-1/%2e%2e/db-2/x"},
		{"400 InvalidObjectName", "GET", "/main/db-1%2f..%2fdb-2/x"},
		{"400 InvalidObjectName", "GET", "/main//db-1/x"},
		{"400 InvalidObjectName", "PUT", "/main/db-1/x%00y"},
		{"400 InvalidObjectName", "PUT", "/main/db-1/x/"},
		{"400 InvalidObjectName", "PUT", "/main/db-1/.howdah/x"},
		{"400 InvalidObjectName", "PUT", "/main/db-1/" + strings.Repeat("n", 300)},
		{"403 AccessDenied", "GET", "/main?list-type=2"},
		{"403 AccessDenied", "GET", "/main?list-type=2&prefix=db"},
		{"403 AccessDenied", "GET", "/main?list-type=2&prefix=db-1"},
		{"403 AccessDenied", "GET", "/main?list-type=2&prefix=db-2%2F"},
		{"403 AccessDenied", "GET", "/main?prefix=%2F"},
		{"200", "GET", "/main?list-type=2&prefix=db-1%2F..%2Fdb-2%2F"},
		{"200", "GET", "/main?list-type=2&prefix=db-0%2F&start-after=zzz"},
		{"200", "GET", "/main?location="},
		{"403 AccessDenied", "GET", "/other?location="},
		{"200", "HEAD", "/main"},
		{"403", "HEAD", "/other"},
		{"501 NotImplemented", "GET", "/main?versioning="},
		{"501 NotImplemented", "PUT", "/main"},
		{"501 NotImplemented", "DELETE", "/main"},
		{"501 NotImplemented", "GET", "/main/db-1/x?acl="},
		{"501 NotImplemented", "PUT", "/main/db-1/x?tagging="},
		{"501 NotImplemented", "DELETE", "/main/db-1/x?versionId=1"},
		{"501 NotImplemented", "PATCH", "/main/db-1/x"},
		{"400 InvalidArgument", "GET", "/main?prefix=db-1%2F&prefix=db-2%2F"},
	} {
		r.want(t, c.want, c.method, c.path, nil)
	}
	r.want(t, "501 NotImplemented", "PUT", "/main/db-1/y", nil, func(q *http.Request) { q.Header.Set("X-Amz-Copy-Source", "/main/db-2/x") })
	text := r.want(t, "200", "POST", "/main?delete=", deletes("db-1/x", "db-2/x", "db-0/x", "x", "db-1/../db-2/x", "db-1/howdah/marks.json"))
	if strings.Count(text, "AccessDenied") != 4 || strings.Count(text, "InvalidObjectName") != 1 || strings.Count(text, "<Deleted>") != 1 {
		t.Errorf("deleted: %s", text)
	}
	if text := r.want(t, "200", "GET", "/main?prefix=db-1%2F..%2Fdb-2%2F", nil); strings.Contains(text, "<Contents>") {
		t.Errorf("listed: %s", text)
	}
	if page, err := s.List(t.Context(), store.Query{Max: 100}); err != nil || len(page.Objects) != 5 {
		t.Errorf("left: %+v, %v", page, err)
	}
	r.SetKey(accessKey, secret, []Grant{{Repository: "other", Database: "db-1"}})
	r.want(t, "403 AccessDenied", "GET", "/main/db-0/x", nil)
	r.want(t, "404 NoSuchKey", "GET", "/other/db-1/x", nil)
	r.RemoveRepository("other")
	r.want(t, "503 SlowDown", "GET", "/other/db-1/x", nil)
	r.RemoveKey(accessKey)
	r.want(t, "403 InvalidAccessKeyId", "GET", "/other/db-1/x", nil)
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	s := directory(t)
	r := newRig(t, s, Config{})
	text := []byte("some text")
	for name, c := range map[string]struct {
		want string
		make func() *http.Request
	}{
		"none": {"403 AccessDenied", func() *http.Request {
			q := r.request(t, "PUT", "/main/db-1/x", text)
			q.Header.Del("Authorization")
			return q
		}},
		"another secret": {"403 SignatureDoesNotMatch", func() *http.Request {
			q := r.request(t, "PUT", "/main/db-1/x", text)
			sign(t, q, "another", time.Now())
			return q
		}},
		"old": {"403 RequestTimeTooSkewed", func() *http.Request {
			q := r.request(t, "PUT", "/main/db-1/x", text)
			sign(t, q, secret, time.Now().Add(-16*time.Minute))
			return q
		}},
		"early": {"403 RequestTimeTooSkewed", func() *http.Request {
			q := r.request(t, "PUT", "/main/db-1/x", text)
			sign(t, q, secret, time.Now().Add(16*time.Minute))
			return q
		}},
		"another path": {"403 SignatureDoesNotMatch", func() *http.Request {
			q := r.request(t, "PUT", "/main/db-1/x", text)
			q.URL.Path = "/main/db-1/y"
			return q
		}},
		"another query": {"403 SignatureDoesNotMatch", func() *http.Request {
			q := r.request(t, "POST", "/main/db-1/x?uploads=", text)
			q.URL.RawQuery = "uploadId=1"
			return q
		}},
		"another method": {"403 SignatureDoesNotMatch", func() *http.Request {
			q := r.request(t, "PUT", "/main/db-1/x", text)
			q.Method = "DELETE"
			return q
		}},
		"a header more": {"403 AccessDenied", func() *http.Request {
			q := r.request(t, "PUT", "/main/db-1/x", text)
			q.Header.Set("X-Amz-Copy-Source", "/main/db-1/y")
			return q
		}},
		"another body": {"400 XAmzContentSHA256Mismatch", func() *http.Request {
			q := r.request(t, "PUT", "/main/db-1/x", text)
			q.Body = io.NopCloser(strings.NewReader("SOME TEXT"))
			return q
		}},
		"another empty body": {"400 XAmzContentSHA256Mismatch", func() *http.Request {
			q := r.request(t, "PUT", "/main/db-1/x", nil, func(q *http.Request) { q.Header.Set("X-Amz-Content-Sha256", signature.Hash(text)) })
			return q
		}},
		"no hash": {"400 InvalidArgument", func() *http.Request {
			return r.request(t, "PUT", "/main/db-1/x", text, func(q *http.Request) { q.Header.Del("X-Amz-Content-Sha256") })
		}},
		"a strange hash": {"400 InvalidArgument", func() *http.Request {
			return r.request(t, "PUT", "/main/db-1/x", text, func(q *http.Request) { q.Header.Set("X-Amz-Content-Sha256", "abc") })
		}},
		"wrong MD5": {"400 BadDigest", func() *http.Request {
			return r.request(t, "PUT", "/main/db-1/x", text, func(q *http.Request) { q.Header.Set("Content-Md5", "1B2M2Y8AsgTpgAmY7PhCfg==") })
		}},
		"no MD5": {"400 InvalidDigest", func() *http.Request {
			return r.request(t, "PUT", "/main/db-1/x", text, func(q *http.Request) { q.Header.Set("Content-Md5", "x") })
		}},
		"wrong CRC": {"400 BadDigest", func() *http.Request {
			return r.request(t, "PUT", "/main/db-1/x", text, func(q *http.Request) { q.Header.Set("X-Amz-Checksum-Crc32", "AAAAAA==") })
		}},
		"no length": {"411 MissingContentLength", func() *http.Request {
			q := r.request(t, "PUT", "/main/db-1/x", text, func(q *http.Request) { q.ContentLength = -1 })
			q.Body = io.NopCloser(bytes.NewReader(text))
			return q
		}},
	} {
		status, code := r.answer(t, c.make())
		if got := fmt.Sprintf("%d %s", status, code); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if page, err := s.List(t.Context(), store.Query{Max: 100}); err != nil || len(page.Objects) != 0 || len(r.written) != 0 {
		t.Errorf("something was written: %+v, %v", page, err)
	}
	r.want(t, "200", "PUT", "/main/db-1/x", text, func(q *http.Request) {
		q.Header.Set("X-Amz-Content-Sha256", unsigned)
		q.Header.Set("Content-Md5", "VS4hzNk9kQCWlnPmSEYFTQ==")
		q.Header.Del("Content-Md5")
	})
}

// sick is a store whose errors tests choose.
type sick struct {
	store.Store
	err error
}

func (s sick) Put(_ context.Context, _ string, body io.Reader) (store.Object, error) {
	_, _ = io.CopyN(io.Discard, body, 10)
	return store.Object{}, s.err
}
func (s sick) Begin(context.Context, string) (string, error) { return "", s.err }
func (s sick) List(context.Context, store.Query) (store.Page, error) {
	return store.Page{}, s.err
}

func TestWhatTheStoreCannotDoIsTriedAgain(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		store.ErrFull: "full", store.ErrAway: "away", store.ErrReadOnly: "cannot be written to", errors.New("odd"): "log",
	} {
		r := newRig(t, sick{directory(t), fmt.Errorf("x: %w", err)}, Config{})
		for _, q := range []*http.Request{
			r.request(t, "PUT", "/main/db-1/x", make([]byte, 4<<20)),
			r.request(t, "POST", "/main/db-1/x?uploads=", nil),
			r.request(t, "GET", "/main?prefix=db-1%2F", nil),
		} {
			response, doErr := r.client.Do(q)
			must(t, doErr)
			text, readErr := io.ReadAll(response.Body)
			must(t, readErr)
			response.Body.Close()
			if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "<Code>SlowDown</Code>") || !strings.Contains(string(text), want) {
				t.Errorf("%v: %s %s: %d, %s", err, q.Method, q.URL, response.StatusCode, text)
			}
		}
		if len(r.failed) != 3 || !errors.Is(r.failed[0], err) || len(r.written) != 0 {
			t.Errorf("told of %v, %v", r.failed, r.written)
		}
	}
}

// mute is a store that says nothing. asked is told that it is asked.
type mute struct {
	store.Store
	asked chan struct{}
}

func (m mute) Put(ctx context.Context, _ string, body io.Reader) (store.Object, error) {
	close(m.asked)
	_, err := io.Copy(io.Discard, body)
	if err == nil {
		<-ctx.Done()
		err = ctx.Err()
	}
	return store.Object{}, err
}

func (m mute) Head(ctx context.Context, _ string) (store.Object, error) {
	close(m.asked)
	<-ctx.Done()
	return store.Object{}, ctx.Err()
}

func (m mute) Delete(ctx context.Context, _ ...string) error {
	close(m.asked)
	<-ctx.Done()
	return ctx.Err()
}

// A client that leaves has waited for a repository that says nothing, or has other reasons: it is at
// once gone, or has not sent all.
func TestAStoreThatSaysNothing(t *testing.T) {
	t.Parallel()
	const soon = 200 * time.Millisecond
	for name, c := range map[string]struct {
		mute       time.Duration
		method     string
		body, part int // so much of it is sent before it leaves
		want       bool
	}{
		"head":               {soon, http.MethodHead, 0, 0, true},
		"put":                {soon, http.MethodPut, 100, 100, true},
		"left at once":       {time.Hour, http.MethodPut, 100, 100, false},
		"a deletion":         {soon, http.MethodDelete, 0, 0, false},
		"left in the middle": {soon, http.MethodPut, 100, 50, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{})
			r := newRig(t, mute{directory(t), asked}, Config{Mute: c.mute})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			q := r.request(t, c.method, "/main/db-1/x", make([]byte, c.body))
			if c.part < c.body {
				q.Body = io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, c.part)), never{ctx}))
			}
			go func() {
				<-asked
				time.Sleep(2 * soon) // nothing tells that nothing was said
				leave()
			}()
			if response, err := r.client.Do(q.WithContext(ctx)); err == nil {
				response.Body.Close()
				t.Fatalf("answered %s", response.Status)
			}
			testkit.Eventually(t, time.Minute, func() error {
				r.Gateway.mu.Lock()
				defer r.Gateway.mu.Unlock()
				if r.underWay > 0 {
					return fmt.Errorf("%d requests are under way", r.underWay)
				}
				return nil
			})
			if told := len(r.failed) == 1 && errors.Is(r.failed[0], store.ErrAway); told != c.want {
				t.Errorf("told of %v", r.failed)
			}
		})
	}
}

// never has nothing to read.
type never struct{ context.Context }

func (n never) Read([]byte) (int, error) {
	<-n.Done()
	return 0, n.Err()
}

func TestUploadsOfAKey(t *testing.T) {
	t.Parallel()
	r := newRig(t, directory(t), Config{UploadsPerKey: 2})
	begin := func() string {
		text := r.want(t, "200", "POST", "/main/db-1/up?uploads=", nil)
		_, id, _ := strings.Cut(text, "<UploadId>")
		id, _, _ = strings.Cut(id, "</UploadId>")
		return url.QueryEscape(id)
	}
	first, second := begin(), begin()
	r.want(t, "503 SlowDown", "POST", "/main/db-1/up?uploads=", nil)
	r.want(t, "204", "DELETE", "/main/db-1/up?uploadId="+second, nil)
	r.want(t, "404 NoSuchUpload", "DELETE", "/main/db-1/up?uploadId="+second, nil)
	begin()
	etag := func(number string, text []byte) string {
		response, err := r.client.Do(r.request(t, "PUT", "/main/db-1/up?uploadId="+first+"&partNumber="+number, text))
		must(t, err)
		response.Body.Close()
		return response.Header.Get("Etag")
	}
	parts := "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" + etag("1", []byte("one ")) + "</ETag></Part><Part><PartNumber>2</PartNumber><ETag>" +
		etag("2", []byte("two")) + "</ETag></Part></CompleteMultipartUpload>"
	r.want(t, "400 InvalidArgument", "PUT", "/main/db-1/up?uploadId="+first+"&partNumber=0", nil)
	r.want(t, "400 InvalidArgument", "PUT", "/main/db-1/up?uploadId="+first+"&partNumber=10001", nil)
	r.want(t, "404 NoSuchUpload", "PUT", "/main/db-1/other?uploadId="+first+"&partNumber=1", nil)
	r.want(t, "400 MalformedXML", "POST", "/main/db-1/up?uploadId="+first, []byte("<x>"))
	r.want(t, "400 InvalidPart", "POST", "/main/db-1/up?uploadId="+first, []byte("<CompleteMultipartUpload></CompleteMultipartUpload>"))
	r.want(t, "200", "POST", "/main/db-1/up?uploadId="+first, []byte(parts))
	r.want(t, "200", "POST", "/main/db-1/up?uploadId="+first, []byte(parts)) // who did not get the answer
	if text := r.want(t, "200", "GET", "/main/db-1/up", nil); text != "one two" || len(r.written) != 1 || r.written[0].Size != 7 {
		t.Errorf("%q, told of %+v", text, r.written)
	}
	begin()
	r.forgetUploads(time.Now().Add(time.Hour))
	begin()
}

func TestBounds(t *testing.T) {
	t.Parallel()
	r := newRig(t, directory(t), Config{MaxObject: 100, Stall: 200 * time.Millisecond, PerKey: 2})
	r.want(t, "200", "PUT", "/main/db-1/x", make([]byte, 100))
	r.want(t, "400 EntityTooLarge", "PUT", "/main/db-1/x", make([]byte, 101))
	r.want(t, "400 EntityTooLarge", "POST", "/main?delete=", make([]byte, maxManyBody+1))
	many := []byte("<Delete>" + strings.Repeat("<Object><Key>db-1/x</Key></Object>", maxMany+2) + "</Delete>")
	r.want(t, "400 MalformedXML", "POST", "/main?delete=", many)
	if text := r.want(t, "200", "GET", "/main?prefix=db-1%2F&max-keys=1000000000", nil); !strings.Contains(text, "<MaxKeys>1000<") {
		t.Errorf("listed %s", text)
	}
	// Bodies that do not come are not waited for long.
	var slow sync.WaitGroup
	for range 2 {
		slow.Go(func() {
			var text bytes.Buffer
			must(t, r.request(t, "PUT", "/main/db-1/slow", make([]byte, 50)).Write(&text))
			dialer := tls.Dialer{Config: r.client.Transport.(*http.Transport).TLSClientConfig}
			conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url, "https://"))
			must(t, err)
			defer conn.Close()
			_, err = conn.Write(text.Bytes()[:text.Len()-10])
			must(t, err)
			answer, err := io.ReadAll(conn)
			if !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") || !strings.Contains(string(answer), "RequestTimeout") {
				t.Errorf("a body that does not come: %s, %v", answer, err)
			}
		})
	}
	slow.Wait()
	testkit.Eventually(t, 5*time.Second, func() error {
		r.Gateway.mu.Lock()
		defer r.Gateway.mu.Unlock()
		if r.underWay != 0 {
			return fmt.Errorf("%d are under way", r.underWay)
		}
		return nil
	})
	if len(r.written) != 1 {
		t.Errorf("told of %+v", r.written)
	}
	for range 2 {
		if !r.enter(r.holders[accessKey]) {
			t.Fatal("there is no room")
		}
	}
	r.want(t, "503 SlowDown", "GET", "/main/db-1/x", nil)
}

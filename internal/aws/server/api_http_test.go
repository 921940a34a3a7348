package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/shape"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// raw is a request as it goes over the wire, and how it is answered.
type raw struct {
	name         string
	method       string // "": POST
	query, body  string
	kind         string // content type; "": a form
	region       string
	service      string // "": rds
	ago          time.Duration
	key, secret  string
	unsigned     bool
	after        func(*http.Request) // changes what was signed
	status       int
	code, within string
}

const listForm = "Action=DescribeDBInstances&Version=2014-10-31"

var raws = []raw{
	{name: "a form", body: listForm, status: 200},
	{name: "a query", method: "GET", query: listForm, status: 200},
	{name: "no version", body: "Action=DescribeDBInstances", status: 200},
	{name: "STS", body: "Action=GetCallerIdentity&Version=2011-06-15", service: "sts", status: 200},
	{name: "fourteen minutes ago", body: listForm, ago: 14 * time.Minute, status: 200},

	{name: "unsigned", body: listForm, unsigned: true, status: 403, code: "MissingAuthenticationToken"},
	{name: "unknown key", body: listForm, key: "NOBODY", status: 403, code: "InvalidClientTokenId"},
	{name: "wrong secret", body: listForm, secret: "guess", status: 403, code: "SignatureDoesNotMatch"},
	{name: "an old date", body: listForm, ago: 16 * time.Minute, status: 400, code: "RequestExpired"},
	{name: "a date to come", body: listForm, ago: -16 * time.Minute, status: 400, code: "RequestExpired"},
	{name: "another body", body: listForm, after: func(r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(listForm, "Instances", "Clusters_")))
	}, status: 403, code: "SignatureDoesNotMatch"},
	{name: "a broken header", body: listForm, after: func(r *http.Request) {
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x")
	}, status: 400, code: "IncompleteSignature"},
	{name: "another algorithm", body: listForm, after: func(r *http.Request) {
		r.Header.Set("Authorization", "Basic Ym9zczpzZWNyZXQ=")
	}, status: 400, code: "IncompleteSignature"},

	{name: "nothing", status: 400, code: "MissingAction"},
	{name: "no action", body: "Version=2014-10-31", status: 400, code: "MissingAction"},
	{name: "an unknown action", body: "Action=MakeTea", status: 400, code: "InvalidAction", within: "MakeTea"},
	{name: "an action of RDS's that is not there", body: "Action=StartExportTask", status: 400, code: "InvalidAction", within: "not available in this version"},
	{name: "an action with markup", body: "Action=%3Cb%3E%26", status: 400, code: "InvalidAction", within: "<b>&"},
	{name: "an unknown service", body: listForm, service: "toaster", status: 400, code: "InvalidAction", within: "toaster"},
	{name: "an action of another service", body: "Action=GetCallerIdentity", status: 400, code: "InvalidAction"},
	{name: "a bad escape", body: listForm + "&X=%zz", status: 404, code: "MalformedQueryString"},
	{name: "a semicolon", body: listForm + ";X=1", status: 404, code: "MalformedQueryString"},
	{name: "JSON", body: "{}", kind: "application/json", status: 415, code: "UnsupportedMediaType"},
	{name: "PUT", method: "PUT", body: listForm, status: 405, code: "MethodNotAllowed"},
	{name: "too large", body: listForm + "&X=" + strings.Repeat("x", wire.MaxBody), status: 413, code: "RequestEntityTooLarge"},
	{name: "too many parameters", body: listForm + strings.Repeat("&a", 200_000), status: 404, code: "MalformedQueryString"},
	{name: "a list without end", body: "Action=AddTagsToResource&ResourceName=x&Tags.Tag.999999999.Key=a", status: 400, code: badValue},
	{name: "bytes that are no text", body: "Action=DescribeDBInstances&DBInstanceIdentifier=%ff%00", status: 404, code: "DBInstanceNotFound"},
}

func TestHTTP(t *testing.T) {
	u := newWorld(t).user(t)
	for _, c := range raws {
		t.Run(c.name, func(t *testing.T) {
			answer := u.raw(t, c)
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			code := ""
			if answer.StatusCode != http.StatusOK {
				if err := shape.CheckError(body); err != nil {
					t.Errorf("%v\n%s", err, body)
				}
				root := parseXML(t, body)
				code = root.text("Error/Code")
				if !strings.Contains(root.text("Error/Message"), c.within) {
					t.Errorf("the message is %q", root.text("Error/Message"))
				}
			}
			if answer.StatusCode != c.status || code != c.code {
				t.Errorf("answered %d %s, want %d %s", answer.StatusCode, code, c.status, c.code)
			}
			if answer.Header.Get("X-Amzn-Requestid") == "" || answer.Header.Get("Content-Type") != wire.ContentType {
				t.Errorf("headers %v", answer.Header)
			}
		})
	}
}

func (u *user) raw(t *testing.T, c raw) *http.Response {
	t.Helper()
	or := func(a, b string) string {
		if a == "" {
			return b
		}
		return a
	}
	url := u.http.URL + "/"
	if c.query != "" {
		url += "?" + c.query
	}
	r, err := http.NewRequestWithContext(t.Context(), or(c.method, "POST"), url, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", or(c.kind, "application/x-www-form-urlencoded"))
	if !c.unsigned {
		keys := sigv4.Credentials{AccessKeyID: or(c.key, u.key), SecretAccessKey: or(c.secret, "secret")}
		sigv4.Sign(r, []byte(c.body), keys, or(c.region, u.region), or(c.service, "rds"), time.Now().Add(-c.ago))
	}
	if c.after != nil {
		c.after(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestStoreIsSilent: when the state cannot be had, the answer is one that clients
// try again, with a word for those who run the home.
func TestStoreIsSilent(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{testkit.FreeAddr(t)}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	cfg := w.server.Config
	cfg.Store, cfg.Newest = &state.Store{Client: client}, newest(client)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/", strings.NewReader(listForm))
	sigv4.Sign(r, []byte(listForm), sigv4.Credentials{AccessKeyID: u.key, SecretAccessKey: "secret"}, u.region, "rds", time.Now())
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "howdah status") {
		t.Errorf("answered %d %s", answer.Code, answer.Body)
	}
}

// TestLongMessages: what is wrong with a long value is said in few words.
func TestLongMessages(t *testing.T) {
	u := newWorld(t).user(t)
	u.try("RebootDBInstance?DBInstanceIdentifier="+strings.Repeat("é", 4000)).is("DBInstanceNotFound", "ééé...")
}

package client

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/home"
	"howdah/internal/testkit"
)

const secret = "verysecretaccesskey"

// serve serves with a handler, and returns a client of it. The client has more patience than a slow
// machine needs.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	c, err := New(Config{
		Endpoint: s.URL + "/", Region: "us-west-2", CA: ca, Source: "a test", Patience: time.Hour,
		Credentials: sigv4.Credentials{AccessKeyID: "KEY", SecretAccessKey: secret},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCallsAreSignedForTheirService(t *testing.T) {
	var services []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		identity, err := sigv4.Verify(r, body, func(key string) (string, bool) { return secret, key == "KEY" }, time.Now())
		if err != nil {
			t.Error(err)
		}
		services = append(services, identity.Service+" "+identity.Region+" "+r.URL.Path)
		if identity.Service == admin.Service {
			io.WriteString(w, `{"moves":[{"member":"m1"}]}`)
			return
		}
		wire.EncodeResult(w, "DescribeDBInstances", "id", &rds.DBInstanceMessage{})
	})
	var drain admin.DrainAnswer
	if err := c.Admin(t.Context(), admin.VerbDrain, admin.DrainRequest{Host: "a"}, &drain); err != nil || len(drain.Moves) != 1 {
		t.Errorf("%+v, %v", drain, err)
	}
	if err := c.RDS(t.Context(), "DescribeDBInstances", &rds.DescribeDBInstancesMessage{}, &rds.DBInstanceMessage{}); err != nil {
		t.Error(err)
	}
	want := "howdah us-west-2 /howdah/admin/drain, rds us-west-2 /"
	if got := strings.Join(services, ", "); got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

// TestWhatIsSentAgain checks that a call which changes something is sent again only if it cannot
// have arrived.
func TestWhatIsSentAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		call  func(*Client) error
		again bool
	}{
		{"describe", func(c *Client) error {
			return c.RDS(context.Background(), "DescribeDBInstances", &rds.DescribeDBInstancesMessage{}, &rds.DBInstanceMessage{})
		}, true},
		{"delete", func(c *Client) error {
			return c.RDS(context.Background(), "DeleteDBInstance", &rds.DeleteDBInstanceMessage{}, &rds.DeleteDBInstanceResult{})
		}, false},
		{"status", func(c *Client) error {
			return c.Admin(context.Background(), admin.VerbStatus, admin.Nothing{}, &admin.Status{})
		}, true},
		{"forget", func(c *Client) error {
			return c.Admin(context.Background(), admin.VerbForgetHost, admin.HostRequest{}, &admin.Nothing{})
		}, false},
	} {
		for _, failure := range []string{"503", "cut"} {
			t.Run(c.name+" "+failure, func(t *testing.T) {
				var calls atomic.Int64
				client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					calls.Add(1)
					if failure == "cut" {
						panic(http.ErrAbortHandler)
					}
					w.WriteHeader(http.StatusServiceUnavailable)
					io.WriteString(w, `{"code":"ServiceUnavailable","message":"Not now."}`)
				})
				// Its patience ends with the second call.
				client.now = func() time.Time { return time.Now().Add(time.Duration(calls.Load()/2) * 2 * client.Patience) }
				if err := c.call(client); err == nil {
					t.Error("no error")
				}
				if got := calls.Load() > 1; got != c.again {
					t.Errorf("sent %d times", calls.Load())
				}
			})
		}
	}
}

func TestAPIThatComesBackIsWaitedFor(t *testing.T) {
	var calls atomic.Int64
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		io.WriteString(w, `{"home":"1a2b3c4d"}`)
	})
	var status admin.Status
	if err := c.Admin(t.Context(), admin.VerbStatus, admin.Nothing{}, &status); err != nil || status.Home != "1a2b3c4d" {
		t.Errorf("%+v, %v", status, err)
	}
}

func TestErrorsOfTheAPI(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, admin.Path) {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"code":"HostNotFound","message":"There is no host \"x\".","hint":"there are a, b"}`)
			return
		}
		wire.NewError(rds.ErrDBInstanceNotFound, "DBInstance %s not found.", "x").Encode(w, rds.Service.XMLNS, "id")
	})
	err := c.Admin(t.Context(), admin.VerbDrain, admin.DrainRequest{}, &admin.DrainAnswer{})
	if !IsCode(err, admin.CodeHostNotFound) || err.Error() != `HostNotFound: There is no host "x". (there are a, b)` {
		t.Errorf("%v", err)
	}
	err = c.RDS(t.Context(), "DescribeDBInstances", &rds.DescribeDBInstancesMessage{}, &rds.DBInstanceMessage{})
	if !IsCode(err, rds.ErrDBInstanceNotFound) || IsCode(err, "Another") {
		t.Errorf("%v", err)
	}
	if IsCode(nil, "x") || IsCode(errors.New("x"), "x") {
		t.Error("other errors have codes")
	}
}

func TestStrangersAreToldApart(t *testing.T) {
	for name, answer := range map[string]string{"a page": "<html>hello</html>", "nothing": "", "other JSON": `{"a":1}`, "half": `{"home":`} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, answer)
		})
		err := c.Admin(t.Context(), admin.VerbStatus, admin.Nothing{}, &admin.Status{})
		if !errors.Is(err, ErrStranger) || !strings.Contains(err.Error(), c.Endpoint) {
			t.Errorf("%s: %v", name, err)
		}
		err = c.RDS(t.Context(), "DescribeDBInstances", &rds.DescribeDBInstancesMessage{}, &rds.DBInstanceMessage{})
		if !errors.Is(err, ErrStranger) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownAuthority(t *testing.T) {
	c := serve(t, func(http.ResponseWriter, *http.Request) {})
	other, err := New(Config{Endpoint: c.Endpoint, Region: "us-west-2", Source: "AWS_ENDPOINT_URL", Patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	err = other.Admin(t.Context(), admin.VerbStatus, admin.Nothing{}, &admin.Status{})
	if err == nil || !strings.HasSuffix(err.Error(), "set AWS_CA_BUNDLE") {
		t.Errorf("%v", err)
	}
}

func TestUnreachable(t *testing.T) {
	c, err := New(Config{
		Endpoint: "https://" + testkit.FreeAddr(t), Region: "us-west-2", Source: "home /x", Patience: 100 * time.Millisecond,
		Credentials: sigv4.Credentials{AccessKeyID: "KEY", SecretAccessKey: secret},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = c.RDS(t.Context(), "DeleteDBInstance", &rds.DeleteDBInstanceMessage{}, &rds.DeleteDBInstanceResult{})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "(home /x)") || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Admin(ctx, admin.VerbStatus, admin.Nothing{}, nil); !errors.Is(err, context.Canceled) || err.Error() != "status: context canceled" {
		t.Errorf("%v", err)
	}
}

func TestBadConfigs(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no URL":         {Endpoint: "127.0.0.1:7443"},
		"another scheme": {Endpoint: "ftp://127.0.0.1"},
		"no host":        {Endpoint: "https://"},
		"no certificate": {Endpoint: "https://127.0.0.1", CA: []byte("x")},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAddress(t *testing.T) {
	for listen, want := range map[string]string{
		"10.0.0.1:7443": "10.0.0.1:7443", "0.0.0.0:7443": "127.0.0.1:7443", "[::]:7443": "127.0.0.1:7443", ":7443": "127.0.0.1:7443", "odd": "odd",
	} {
		if got := Address(listen); got != want {
			t.Errorf("%s: %s, not %s", listen, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	h, err := home.Ensure(dir, home.Options{Listen: "127.0.0.1:7443"})
	if err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(t.TempDir(), "none")
	elsewhere := map[string]string{
		"AWS_ENDPOINT_URL": "https://10.0.0.1:7443", "AWS_ACCESS_KEY_ID": "K", "AWS_SECRET_ACCESS_KEY": "S", "AWS_CA_BUNDLE": h.CAFile(),
	}
	with := func(key, value string) map[string]string {
		vars := map[string]string{key: value}
		for k, v := range elsewhere {
			if k != key {
				vars[k] = v
			}
		}
		return vars
	}
	for _, c := range []struct {
		name, dir string
		named     bool
		env       map[string]string
		want      string // the source; or the error's end
		region    string
	}{
		{"a named home wins", dir, true, elsewhere, "home " + dir, home.DefaultRegion},
		{"a named home that is none", none, true, elsewhere, "run `howdah up` first", ""},
		{"the environment wins over the usual home", dir, false, elsewhere, "AWS_ENDPOINT_URL", home.DefaultRegion},
		{"RDS's own variable", dir, false, with("AWS_ENDPOINT_URL_RDS", "https://10.0.0.2:7443"), "AWS_ENDPOINT_URL_RDS", home.DefaultRegion},
		{"a region", dir, false, with("AWS_DEFAULT_REGION", "eu-central-1"), "AWS_ENDPOINT_URL", "eu-central-1"},
		{"the usual home", dir, false, nil, "home " + dir, home.DefaultRegion},
		{"nothing", none, false, nil, "AWS_SECRET_ACCESS_KEY", ""},
		{"no secret", dir, false, with("AWS_SECRET_ACCESS_KEY", ""), "AWS_SECRET_ACCESS_KEY is not", ""},
		{"no bundle", dir, false, with("AWS_CA_BUNDLE", none), "no such file or directory", ""},
	} {
		api, at, err := Find(c.dir, c.named, func(name string) string { return c.env[name] })
		switch {
		case err != nil:
			if c.region != "" || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
		case api.Source != c.want || api.Region != c.region || (at != nil) != strings.HasPrefix(c.want, "home "):
			t.Errorf("%s: %s in %s, home %v", c.name, api.Source, api.Region, at)
		}
	}
}

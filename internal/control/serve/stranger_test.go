package serve

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"howdah/internal/identity/stranger"
	"howdah/internal/testkit"
)

// TestWhatTheUnauthenticatedHold checks that 300 connections which each send 1 MiB and wait take a
// bounded part of the control plane's memory, with TLS and without. What they may not send is
// answered, so that clients try again.
func TestWhatTheUnauthenticatedHold(t *testing.T) {
	var refused, reading atomic.Int64
	site := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reading.Add(1)
		if _, err := io.ReadAll(r.Body); err != nil {
			refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	text := bytes.Repeat([]byte("a"), 1<<20)
	before := inUse()
	for n := range 300 {
		c, err := net.Dial("tcp", site.addr)
		if err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			config := site.client.Clone()
			config.Certificates, config.GetClientCertificate = nil, nil
			config.ServerName = "127.0.0.1"
			c = tls.Client(c, config)
		}
		t.Cleanup(func() { c.Close() })
		go func() {
			// The server may refuse to read on.
			_, _ = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(text)+1)
			_, _ = c.Write(text)
		}()
	}
	testkit.Eventually(t, 60*time.Second, func() error {
		if all, no := reading.Load(), refused.Load(); all < 300 || no < 300-stranger.Default.Bytes>>20 {
			return fmt.Errorf("%d of 300 are being read, %d are refused", all, no)
		}
		return nil
	})
	grown := inUse() - before
	t.Logf("300 connections with 1 MiB each: %d MiB in use, %d refused", grown>>20, refused.Load())
	if grown > 100<<20 {
		t.Errorf("the process has %d MiB more in use", grown>>20)
	}
	// A caller with a certificate of the home does not count among them.
	if got, err := site.send(bytes.Repeat([]byte("b"), 1<<20)); err != nil || got != http.StatusOK {
		t.Errorf("a host's body: %d, %v", got, err)
	}
}

func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// send posts with the certificate of the home's own.
func (s *site) send(text []byte) (int, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.client.Clone()}, Timeout: 60 * time.Second}
	defer client.CloseIdleConnections()
	answer, err := client.Post("https://"+s.addr, "text/plain", bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	return answer.StatusCode, nil
}

package etcd

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/identity/certs"
)

// A member that listens inside is reached there, by gRPC and by JSON, and at no port. The name of
// its directory may have any length.
func TestAMemberThatListensInside(t *testing.T) {
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	cfg, _ := newConfig(t, ca, "s1")
	cfg.Dir, cfg.Inside = filepath.Join(t.TempDir(), strings.Repeat("long", 40), "etcd"), true
	m := start(t, cfg)
	client, err := m.InsideClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	large := strings.Repeat("x", 1<<20)
	for _, key := range []string{"a1", "a2", "a3", "a4", "a5"} {
		if _, err := client.Put(ctx, key, large); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := client.Get(ctx, "a", clientv3.WithPrefix()); err != nil || len(all.Kvs) != 5 {
		t.Errorf("an answer of 5 MiB: %v", err)
	}
	list, err := client.MemberList(ctx)
	if err != nil || len(list.Members) != 1 || list.Members[0].ClientURLs[0] != "https://"+cfg.ClientAddr {
		t.Errorf("others are told of %v, %v", list, err)
	}
	answer, err := m.InsideHTTP().Post("http://etcd/v3/kv/range", "application/json", strings.NewReader(`{"key":"YTE="}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK || err != nil || !strings.Contains(string(text), "kvs") {
		t.Errorf("by JSON: %d %.100s %v", answer.StatusCode, text, err)
	}
	if c, err := net.Dial("tcp", cfg.ClientAddr); err == nil {
		c.Close()
		t.Error("it listens at its port")
	}
	if info, err := os.Stat(cfg.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory: %v, %v", info.Mode(), err)
	}
}

package etcdgate

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A request by JSON whose body does not come is given up. It would hold its part of a host's room,
// and memory.
func TestABodyThatDoesNotCome(t *testing.T) {
	d := newDoorway(t)
	config, err := d.home.Issue(t, "agent:h1").ClientTLS()
	d.must(err)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(d.urls[0], "https://"), config)
	d.must(err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /v3/kv/range HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n{")
	d.must(err)
	d.must(conn.SetReadDeadline(time.Now().Add(45 * time.Second)))
	if _, err := conn.Read(make([]byte, 1)); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("45 s later it is still waited for: %d under way", d.underWay("agent:h1"))
	}
}

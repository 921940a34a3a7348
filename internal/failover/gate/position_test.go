package gate

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Answers as Patroni 4.1.5 gives them.
func TestPositions(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       Position
		err        bool
	}{
		{"a standby", `{"state":"running","role":"replica","xlog":{"received_location":50331984,"replayed_location":50331648,"replayed_timestamp":null,"paused":false},"timeline":2}`,
			Position{LSN: 50331984, Timeline: 2, Recovery: true}, false},
		{"a standby that received nothing since its start", `{"xlog":{"received_location":0,"replayed_location":77},"timeline":1}`,
			Position{LSN: 77, Timeline: 1, Recovery: true}, false},
		{"a primary", `{"role":"primary","xlog":{"location":50331984},"timeline":2}`, Position{Timeline: 2}, false},
		{"one that does not know its timeline", `{"xlog":{"received_location":5,"replayed_location":5},"timeline":null}`, Position{LSN: 5, Recovery: true}, false},
		{"one whose PostgreSQL does not answer", `{"state":"running","role":"replica"}`, Position{}, true},
		{"one whose PostgreSQL does not run", `{"state":"stopped","role":"demoted","data_timeline":3}`, Position{OnDisk: 3, Silent: true}, false},
		{"a standby of our release", `{"xlog":{"received_location":9,"replayed_location":5},"timeline":1,"data_timeline":2}`,
			Position{LSN: 9, Timeline: 1, Recovery: true, OnDisk: 2}, false},
		{"one that is not anywhere yet", `{"xlog":{"received_location":0,"replayed_location":0}}`, Position{}, true},
		{"nonsense", `<html>`, Position{}, true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable) // what a standby answers here
			io.WriteString(w, c.body)
		}))
		got, err := Asker(server.Client())(t.Context(), server.URL)
		server.Close()
		if got != c.want || (err != nil) != c.err {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if _, err := Asker(server.Client())(t.Context(), server.URL); err == nil || errors.Is(err, errNoPosition) {
			t.Errorf("%s: when it is gone: %v", c.name, err)
		}
	}
}

package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/model/spec"
)

// TestTranslate checks that for errors which pass by themselves the answer is one that clients try
// again.
func TestTranslate(t *testing.T) {
	cases := map[string]struct {
		err  error
		code string
	}{
		"timeout":       {fmt.Errorf("write: %w", rpctypes.ErrTimeout), "ServiceUnavailable"},
		"no leader":     {fmt.Errorf("read: %w", rpctypes.ErrNoLeader), "ServiceUnavailable"},
		"lost":          {fmt.Errorf("read: %w", status.Error(codes.Unavailable, "connection refused")), "ServiceUnavailable"},
		"deadline":      {fmt.Errorf("read: %w", context.DeadlineExceeded), "ServiceUnavailable"},
		"out of space":  {fmt.Errorf("write: %w", rpctypes.ErrNoSpace), "ServiceUnavailable"},
		"caller left":   {context.Canceled, "ServiceUnavailable"},
		"a broken rule": {fmt.Errorf("check: %w", &spec.Invalid{Code: api.ErrInvalidParameterCombination, Message: "100%"}), api.ErrInvalidParameterCombination},
		"anything else": {errors.New("oops"), ""},
	}
	for name, c := range cases {
		got := Translate(c.err)
		if got == nil && c.code != "" || got != nil && got.Code != c.code {
			t.Errorf("%s: %v, want %q", name, got, c.code)
		}
	}
}

// TestInternalFailure checks that an error of our own is logged in full, and that the caller is
// only told where to look.
func TestInternalFailure(t *testing.T) {
	var log bytes.Buffer
	f := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	service := &Service{Contract: &rds.Service}
	answer := httptest.NewRecorder()
	f.refuse(answer, service, "the-id", f.known(service, "the-id", errors.New("disk of host-7 is on fire")))
	body := answer.Body.String()
	if answer.Code != http.StatusInternalServerError || strings.Contains(body, "host-7") || !strings.Contains(body, "the-id") {
		t.Errorf("answered %d %s", answer.Code, body)
	}
	if !strings.Contains(log.String(), "host-7") || !strings.Contains(log.String(), "the-id") {
		t.Error("the log does not have it")
	}
}

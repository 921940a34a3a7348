// Package rest asks a member's Patroni REST API for the few things that only
// Patroni may do.
package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"howdah/internal/model/patroni"
)

// ErrRefused says that Patroni answered, and would not do what it was asked.
var ErrRefused = errors.New("refused by Patroni")

// ErrBusy is an ErrRefused for as long as Patroni is at something else, such as the
// end of a bootstrap: the same may be asked again soon.
var ErrBusy = fmt.Errorf("busy: %w", ErrRefused)

// busy ends the answer of a Patroni 4.1 that does one of its longer works (patroni/ha.py,
// restart and reinitialize; patronictl knows it by the same words).
const busy = " already in progress"

// Member asks one member's API. The client must show a certificate of the home.
type Member struct {
	HTTP *http.Client
	URL  string // https://address:port
}

// Restart restarts PostgreSQL of the member and returns when it is up again.
func (m Member) Restart(ctx context.Context) error {
	return m.call(ctx, http.MethodPost, "/restart", map[string]any{})
}

// Reinitialize throws the member's data away and copies them from the primary.
func (m Member) Reinitialize(ctx context.Context) error {
	return m.call(ctx, http.MethodPost, "/reinitialize", map[string]any{"force": true})
}

// Switchover hands the primary role over in Patroni's own, slower way: the
// fallback of a planned failover. An empty candidate lets Patroni choose.
func (m Member) Switchover(ctx context.Context, leader, candidate string) error {
	request := map[string]any{"leader": leader}
	if candidate != "" {
		request["candidate"] = candidate
	}
	return m.call(ctx, http.MethodPost, "/switchover", request)
}

// Wake has the HA loop take its next turn at once. A change of the configuration does
// that, also one to what is there already, which changes nothing.
func (m Member) Wake(ctx context.Context) error {
	return m.call(ctx, http.MethodPatch, "/config", map[string]any{"loop_wait": patroni.LoopWait})
}

// Alive asks whether Patroni's HA loop runs; the answer says nothing of PostgreSQL.
func (m Member) Alive(ctx context.Context) error {
	return m.call(ctx, http.MethodGet, "/liveness", nil)
}

func (m Member) call(ctx context.Context, method, path string, body any) error {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("patroni %s: %w", path, err)
		}
		payload = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, m.URL+path, payload)
	if err != nil {
		return fmt.Errorf("patroni %s: %w", path, err)
	}
	answer, err := m.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("patroni %s: %w", path, err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
	if answer.StatusCode/100 == 2 {
		return nil
	}
	text, refused := bytes.TrimSpace(text), ErrRefused
	if bytes.HasSuffix(text, []byte(busy)) {
		refused = ErrBusy
	}
	return fmt.Errorf("patroni %s: %d %s: %w", path, answer.StatusCode, text, refused)
}

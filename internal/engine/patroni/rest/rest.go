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

// ErrRefused says that Patroni answered, but refused to do what it was asked.
var ErrRefused = errors.New("refused by Patroni")

// ErrBusy is an ErrRefused while Patroni does something else, such as the end of a bootstrap. The
// caller may ask again soon.
var ErrBusy = fmt.Errorf("busy: %w", ErrRefused)

// busy is the end of Patroni 4.1's answer while it does one of its longer tasks (patroni/ha.py,
// restart and reinitialize; patronictl looks for the same words).
const busy = " already in progress"

// Member asks one member's API. The client must show a certificate of the home.
type Member struct {
	HTTP *http.Client
	URL  string // https://address:port
}

// Restart restarts the member's PostgreSQL, and returns when it is up again.
func (m Member) Restart(ctx context.Context) error {
	return m.call(ctx, http.MethodPost, "/restart", map[string]any{})
}

// Reinitialize deletes the member's data and copies them from the primary.
func (m Member) Reinitialize(ctx context.Context) error {
	return m.call(ctx, http.MethodPost, "/reinitialize", map[string]any{"force": true})
}

// Switchover hands the primary role over in Patroni's own, slower way. It is the fallback of a
// planned failover. With an empty candidate Patroni chooses.
func (m Member) Switchover(ctx context.Context, leader, candidate string) error {
	request := map[string]any{"leader": leader}
	if candidate != "" {
		request["candidate"] = candidate
	}
	return m.call(ctx, http.MethodPost, "/switchover", request)
}

// Wake makes the HA loop take its next turn at once. Any change of the configuration does that.
// Wake writes what is already there, which changes nothing.
func (m Member) Wake(ctx context.Context) error {
	return m.call(ctx, http.MethodPatch, "/config", map[string]any{"loop_wait": patroni.LoopWait})
}

// Alive returns nil if Patroni's HA loop runs. It says nothing about PostgreSQL.
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

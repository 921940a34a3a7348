package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Position says how far a member's WAL goes, by its Patroni.
type Position struct {
	LSN      int64
	Timeline int  // 0 if unknown
	Recovery bool // it takes no writes
	Silent   bool // its PostgreSQL does not answer
	// OnDisk is the newest timeline of the WAL on its disk; 0 if unknown.
	OnDisk int
}

// askTimeout is how long a member may take to answer: as long as in an election of Patroni.
const askTimeout = 2 * time.Second

var errNoPosition = errors.New("it does not say how far it is")

// Asker makes Config.Ask from a client that shows a certificate of the home.
func Asker(client *http.Client) func(context.Context, string) (Position, error) {
	return func(ctx context.Context, url string) (Position, error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return Position{}, fmt.Errorf("ask %s: %w", url, err)
		}
		answer, err := client.Do(request)
		if err != nil {
			return Position{}, fmt.Errorf("ask %s: %w", url, err)
		}
		defer answer.Body.Close()
		// A standby answers 503 here, because it is no primary, with the same body.
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		if err != nil {
			return Position{}, fmt.Errorf("ask %s: %w", url, err)
		}
		return parsePosition(text)
	}
}

// parsePosition reads the answer of Patroni's GET /patroni, as an election does
// (patroni/ha.py, _MemberStatus).
func parsePosition(text []byte) (Position, error) {
	var said struct {
		Timeline int `json:"timeline"`
		OnDisk   int `json:"data_timeline"` // by patroni.Whole
		XLog     *struct {
			Location *int64 `json:"location"`
			Received int64  `json:"received_location"`
			Replayed int64  `json:"replayed_location"`
		} `json:"xlog"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return Position{}, fmt.Errorf("read a position: %w", err)
	}
	if said.XLog == nil && said.OnDisk > 0 {
		return Position{OnDisk: said.OnDisk, Silent: true}, nil
	}
	if said.XLog == nil {
		return Position{}, errNoPosition
	}
	p := Position{Timeline: said.Timeline, LSN: max(said.XLog.Received, said.XLog.Replayed), Recovery: said.XLog.Location == nil, OnDisk: said.OnDisk}
	if p.Recovery && p.LSN == 0 {
		return Position{}, errNoPosition
	}
	return p, nil
}

func encode(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"howdah/internal/testkit/patience"
)

// receiver is an endpoint of notifications.
type receiver struct {
	*httptest.Server
	tokens, messages chan string
}

// backlog is more than anyone sends to one receiver.
const backlog = 100

func receive(t *testing.T) *receiver {
	r := &receiver{tokens: make(chan string, backlog), messages: make(chan string, backlog)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, asked *http.Request) {
		body, err := io.ReadAll(asked.Body)
		if err != nil {
			return
		}
		var confirmation struct{ Token string }
		if asked.Header.Get("x-amz-sns-message-type") != "SubscriptionConfirmation" {
			r.messages <- string(body)
		} else if json.Unmarshal(body, &confirmation) == nil {
			r.tokens <- confirmation.Token
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// token returns the token of the first confirmation that is asked for.
func (r *receiver) token(ctx context.Context) (any, error) { return first(ctx, r.tokens) }

// message returns the first message that arrives.
func (r *receiver) message(ctx context.Context) (any, error) { return first(ctx, r.messages) }

func first(ctx context.Context, arriving <-chan string) (any, error) {
	within := patience.For(20 * time.Second)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case text := <-arriving:
		return text, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("nothing arrived within %s: %w", within, ctx.Err())
	}
}

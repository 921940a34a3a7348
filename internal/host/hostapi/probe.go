package hostapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/repository/place"
)

// probeTimeout bounds how long a host may take to answer a probe of a repository. A file system
// that is away may never answer.
const probeTimeout = 20 * time.Second

// ProbeRequest asks an agent whether its host reaches a repository, and whether it sees the same
// place as the control plane: it reads what the control plane wrote there, and writes an answer.
type ProbeRequest struct {
	// Repository has no passphrase. It has no ID before it is marked.
	Repository member.Repository `json:"repository"`
	Probe      place.Probe       `json:"probe"`
}

type probeAnswer struct {
	// Why says what does not work. It is "" if all does.
	Why string `json:"why,omitempty"`
}

const probePath = Path + "probe-repository"

// ProbeHandler is an agent's side, for the host of this name. It answers only control planes.
func ProbeHandler(host string, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if certs.Caller(r.TLS) != home.ServerName {
			log.Warn("request to probe a repository refused", "caller", certs.Caller(r.TLS), "from", r.RemoteAddr)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		var in ProbeRequest
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<19)).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout-time.Second)
		defer cancel()
		var answer probeAnswer
		if err := answerProbe(ctx, host, in); err != nil {
			answer.Why = err.Error()
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer)
	})
}

// answerProbe returns when ctx ends, also if the file system does not answer. What waits for it
// ends when it does answer.
func answerProbe(ctx context.Context, host string, in ProbeRequest) error {
	done := make(chan error, 1)
	go func() {
		s, err := place.Open(in.Repository)
		if err == nil {
			err = in.Probe.Answer(ctx, s, host)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("it does not answer: %w", ctx.Err())
	}
}

// Prober is the control plane's side.
type Prober struct {
	// Identity is the identity of the control plane.
	Identity Credentials
}

// Probe returns why a host cannot work with a repository, or "". An error says that the host could
// not be asked. address is where its agent listens.
func (p *Prober) Probe(ctx context.Context, host, address string, r member.Repository, probe place.Probe) (why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r.Passphrase = ""
	status, text, err := askAgent(ctx, p.Identity, host, address, probePath, ProbeRequest{Repository: r, Probe: probe})
	if err != nil {
		return "", err
	}
	if status == http.StatusNotFound {
		return "", fmt.Errorf("the agent of %s is of an older release: start it again with the new program", host)
	}
	if status != http.StatusOK {
		return "", fmt.Errorf("the agent of %s: %s", host, http.StatusText(status))
	}
	var answer probeAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", host, err)
	}
	return answer.Why, nil
}

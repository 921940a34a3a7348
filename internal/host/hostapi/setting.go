package hostapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
)

// settingTimeout bounds how long a host may check a value.
const settingTimeout = 4 * time.Second

// SettingRequest asks an agent whether PostgreSQL of a major version on its host would
// take a value of a parameter.
type SettingRequest struct {
	Major int    `json:"major"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

type settingAnswer struct {
	// Why says why PostgreSQL refuses the value. It is "" if PostgreSQL takes it.
	Why string `json:"why,omitempty"`
}

const settingPath = Path + "check-setting"

var settingForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// SettingHandler is an agent's side. It answers only control planes. check returns why PostgreSQL
// refuses the value, or "". It returns an error if PostgreSQL cannot be asked.
func SettingHandler(check func(context.Context, SettingRequest) (why string, err error), log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if certs.Caller(r.TLS) != home.ServerName {
			log.Warn("request to check a setting refused", "caller", certs.Caller(r.TLS), "from", r.RemoteAddr)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		var in SettingRequest
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<19)).Decode(&in); err != nil || !settingForm.MatchString(in.Name) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		why, err := check(r.Context(), in)
		if err != nil {
			log.Warn("check a setting", "major", in.Major, "parameter", in.Name, "error", err)
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(settingAnswer{Why: why})
	})
}

// SettingChecker is the control plane's side.
type SettingChecker struct {
	// Identity is the identity of the control plane.
	Identity Credentials
}

// Check returns why PostgreSQL of a host refuses a value, or "" if it takes it. An error says that
// PostgreSQL could not be asked. address is where the agent listens.
func (s *SettingChecker) Check(ctx context.Context, host, address string, in SettingRequest) (why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, settingTimeout)
	defer cancel()
	status, text, err := askAgent(ctx, s.Identity, host, address, settingPath, in)
	if err != nil {
		return "", err
	}
	var answer settingAnswer
	if status != http.StatusOK {
		return "", fmt.Errorf("the agent of %s: %s", host, http.StatusText(status))
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", host, err)
	}
	return answer.Why, nil
}

// AgentHandler handles everything that an agent answers control planes.
func AgentHandler(logs, settings, probes, fetches http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+settingPath, settings)
	mux.Handle("POST "+probePath, probes)
	mux.Handle("POST "+fetchPath, fetches)
	mux.Handle("/", logs)
	return mux
}

package hostapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"howdah/internal/host/logfile"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
)

// ErrNoHost says that a host's agent cannot be asked. It does not answer, or its version does not
// tell where it listens.
var ErrNoHost = errors.New("the host's agent does not answer")

// logTimeout bounds a look into a host's logs.
const logTimeout = 8 * time.Second

// LogRequest asks an agent for the log files of one of its members, or for a portion of one file.
type LogRequest struct {
	Member string `json:"member"`
	File   string `json:"file,omitempty"`
	Marker string `json:"marker,omitempty"`
	Lines  int    `json:"lines,omitempty"`
}

// logFailure is the body of an answer that is not 200.
type logFailure struct {
	Error    string `json:"error"`
	NoFile   bool   `json:"no_file,omitempty"`
	NoMarker bool   `json:"no_marker,omitempty"`
}

// The paths of an agent.
const (
	logFilesPath   = Path + "log-files"
	logPortionPath = Path + "log-portion"
)

// LogHandler is an agent's side. It answers only control planes, from the log directory of a
// member. dir returns false if the host has no such member.
func LogHandler(dir func(member string) (logfile.Dir, bool), log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+logFilesPath, answerLog(dir, log, func(d logfile.Dir, _ LogRequest) ([]logfile.File, error) { return d.List() }))
	mux.HandleFunc("POST "+logPortionPath, answerLog(dir, log, func(d logfile.Dir, in LogRequest) (logfile.Portion, error) {
		return d.Read(in.File, in.Marker, in.Lines)
	}))
	return mux
}

func answerLog[Out any](dir func(string) (logfile.Dir, bool), log *slog.Logger, f func(logfile.Dir, LogRequest) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if certs.Caller(r.TLS) != home.ServerName {
			log.Warn("request for a log refused", "caller", certs.Caller(r.TLS), "from", r.RemoteAddr)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		var in LogRequest
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		d, ok := dir(in.Member)
		if !ok {
			refuseLog(w, fmt.Errorf("member %q: %w", in.Member, logfile.ErrNoFile))
			return
		}
		out, err := f(d, in)
		if err != nil {
			refuseLog(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(out)
	}
}

func refuseLog(w http.ResponseWriter, err error) {
	f := logFailure{Error: err.Error(), NoFile: errors.Is(err, logfile.ErrNoFile), NoMarker: errors.Is(err, logfile.ErrMarker)}
	status := http.StatusInternalServerError
	if f.NoFile || f.NoMarker {
		status = http.StatusNotFound
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(f)
}

// LogReader is the control plane's side.
type LogReader struct {
	// Identity is the identity of the control plane.
	Identity Credentials
}

// Files returns the log files of a member, the oldest first. host is the host's name, and address
// is where its agent listens.
func (l *LogReader) Files(ctx context.Context, host, address, member string) ([]logfile.File, error) {
	var files []logfile.File
	err := l.ask(ctx, host, address, logFilesPath, LogRequest{Member: member}, &files)
	return files, err
}

// Portion returns a part of a log file. See logfile.Dir.Read, also for the errors.
func (l *LogReader) Portion(ctx context.Context, host, address string, in LogRequest) (logfile.Portion, error) {
	var p logfile.Portion
	err := l.ask(ctx, host, address, logPortionPath, in, &p)
	return p, err
}

func (l *LogReader) ask(ctx context.Context, host, address, path string, in LogRequest, out any) error {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	status, text, err := askAgent(ctx, l.Identity, host, address, path, in)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return logRefusal(host, status, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("read the answer of %s: %w", host, err)
	}
	return nil
}

// askAgent sends a request to the agent of this host, and to nobody else. The error is ErrNoHost if
// nobody answers.
func askAgent(ctx context.Context, own Credentials, host, address, path string, in any) (status int, text []byte, err error) {
	if address == "" {
		return 0, nil, fmt.Errorf("%s: %w", host, ErrNoHost)
	}
	config, err := onlyAgent(own, host)
	if err != nil {
		return 0, nil, err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", host, ErrNoHost)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w: %w", host, ErrNoHost, err)
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, 4*logfile.MaxBytes))
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w: %w", host, ErrNoHost, err)
	}
	return answer.StatusCode, text, nil
}

func logRefusal(host string, status int, text []byte) error {
	var f logFailure
	switch err := json.Unmarshal(text, &f); {
	case err == nil && f.NoFile:
		return logfile.ErrNoFile
	case err == nil && f.NoMarker:
		return logfile.ErrMarker
	case f.Error == "":
		f.Error = http.StatusText(status)
	}
	return fmt.Errorf("the agent of %s: %s", host, f.Error)
}

// onlyAgent returns a configuration that trusts the agent of one host. Its certificate is of our
// authority and has the host's name. It names no address, because hosts may move.
func onlyAgent(own Credentials, host string) (*tls.Config, error) {
	config, err := own.ClientTLS()
	if err != nil {
		return nil, err
	}
	roots := config.RootCAs
	config.ClientSessionCache = nil
	config.InsecureSkipVerify = true // replaced by the check below
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 || state.PeerCertificates[0].Subject.CommonName != string(Agent)+":"+host {
			return certs.ErrNotOurs
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
		return err
	}
	return config, nil
}

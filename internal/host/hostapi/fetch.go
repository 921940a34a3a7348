package hostapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
)

// ErrNotReady says that a host's job has nothing that could be fetched: it is not ready, or over.
var ErrNotReady = errors.New("nothing can be fetched there now")

// FetchRequest asks an agent for what one of its jobs offers. Taken says instead that somebody has all
// of it.
type FetchRequest struct {
	Job   string `json:"job"`
	Taken bool   `json:"taken,omitempty"`
}

// Offer is what a job lets control planes fetch.
type Offer interface {
	// Bytes is about how many bytes Send writes.
	Bytes() int64
	Send(ctx context.Context, to io.Writer) error
	Taken()
}

const (
	fetchPath = Path + "fetch"
	// SizeHeader is about how many bytes follow, and SumTrailer is the SHA-256 of all of them. What has
	// no sum is not whole.
	SizeHeader = "Howdah-Size"
	SumTrailer = "Howdah-Sha256"
	// StallsAfter is how long either side may take for a portion.
	StallsAfter = time.Minute
)

// FetchHandler is an agent's side. It answers only control planes.
func FetchHandler(offer func(job string) (Offer, error), log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if certs.Caller(r.TLS) != home.ServerName {
			log.Warn("request to fetch data refused", "caller", certs.Caller(r.TLS), "from", r.RemoteAddr)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		var in FetchRequest
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		of, err := offer(in.Job)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusConflict)
		case in.Taken:
			of.Taken()
			w.WriteHeader(http.StatusNoContent)
		default:
			if err := SendSummed(r.Context(), w, of.Bytes(), of.Send); err != nil {
				log.Warn("send data", "job", in.Job, "error", err)
			}
		}
	})
}

// SendSummed answers a request with what send writes, however long that takes, and with its sum. An
// answer that was not whole has no sum.
func SendSummed(ctx context.Context, w http.ResponseWriter, size int64, send func(ctx context.Context, to io.Writer) error) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // nothing more is read; at the server's deadline ctx would end
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set(SizeHeader, strconv.FormatInt(size, 10))
	w.Header().Set("Trailer", SumTrailer)
	w.WriteHeader(http.StatusOK)
	to := &summed{to: w, control: control, sum: sha256.New()}
	if err := send(ctx, to); err != nil {
		return err
	}
	_ = control.SetWriteDeadline(time.Now().Add(StallsAfter))
	w.Header().Set(SumTrailer, hex.EncodeToString(to.sum.Sum(nil)))
	return nil
}

// summed writes an answer, with a deadline for each portion.
type summed struct {
	to      io.Writer
	control *http.ResponseController
	sum     hash.Hash
}

func (s *summed) Write(p []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(StallsAfter))
	n, err := s.to.Write(p)
	s.sum.Write(p[:n])
	return n, err
}

// ErrCut says that an answer ended before all of it was there, or was changed on its way.
var ErrCut = errors.New("what was fetched is not whole")

// Summed is an answer of SendSummed that is being read. Read returns io.EOF only if all came whole.
type Summed struct {
	Size   int64 // about
	answer *http.Response
	sum    hash.Hash
	stall  *time.Timer
	cancel func()
}

// ReadSummed reads an answer of SendSummed. cancel ends its request. The caller closes it.
func ReadSummed(answer *http.Response, cancel func()) *Summed {
	size, _ := strconv.ParseInt(answer.Header.Get(SizeHeader), 10, 64) // 0: nobody knows
	return &Summed{Size: size, answer: answer, sum: sha256.New(), stall: time.AfterFunc(StallsAfter, cancel), cancel: cancel}
}

func (s *Summed) Read(p []byte) (int, error) {
	s.stall.Reset(StallsAfter)
	n, err := s.answer.Body.Read(p)
	s.stall.Stop() // the reader may take as long as it likes for what it has
	s.sum.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if s.answer.Trailer.Get(SumTrailer) != hex.EncodeToString(s.sum.Sum(nil)) {
			return n, ErrCut
		}
		return n, io.EOF
	}
	if err != nil {
		return n, fmt.Errorf("%w: %w", ErrCut, err)
	}
	return n, nil
}

// Close ends the request.
func (s *Summed) Close() error {
	s.stall.Stop()
	err := s.answer.Body.Close()
	s.cancel()
	return err
}

// Fetcher is the control plane's side.
type Fetcher struct {
	// Identity is the identity of the control plane.
	Identity Credentials
}

// Fetch returns what a job of a host offers. The caller closes it. The error is ErrNoHost or
// ErrNotReady if another try may help.
func (f *Fetcher) Fetch(ctx context.Context, host, address, job string) (*Summed, error) {
	ctx, cancel := context.WithCancel(ctx)
	answer, err := f.ask(ctx, host, address, FetchRequest{Job: job})
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.Join(whyNoFetch(host, answer.StatusCode), answer.Body.Close())
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return ReadSummed(answer, cancel), nil
}

// Taken tells a job that somebody has all that it offers.
func (f *Fetcher) Taken(ctx context.Context, host, address, job string) error {
	answer, err := f.ask(ctx, host, address, FetchRequest{Job: job, Taken: true})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		return whyNoFetch(host, answer.StatusCode)
	}
	return nil
}

func whyNoFetch(host string, status int) error {
	switch status {
	case http.StatusConflict:
		return fmt.Errorf("%s: %w", host, ErrNotReady)
	case http.StatusNotFound:
		return fmt.Errorf("the agent of %s is of an older release: start it again with the new program", host) //nolint:err113 // nobody tells it apart
	}
	return fmt.Errorf("the agent of %s: %s", host, http.StatusText(status)) //nolint:err113 // nobody tells it apart
}

func (f *Fetcher) ask(ctx context.Context, host, address string, in FetchRequest) (*http.Response, error) {
	config, err := onlyAgent(f.Identity, host)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+fetchPath, bytes.NewReader(body))
	if err != nil || address == "" {
		return nil, fmt.Errorf("%s: %w", host, ErrNoHost)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: config, DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: logTimeout, TLSHandshakeTimeout: logTimeout,
	}}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", host, ErrNoHost, err)
	}
	return answer, nil
}

package snapshot_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// offered is what the played host lets be fetched.
type offered struct {
	text  string
	takes atomic.Int32
	cut   atomic.Bool
}

func (o *offered) Bytes() int64 { return int64(len(o.text)) }

func (o *offered) Taken() { o.takes.Add(1) }

func (o *offered) Send(_ context.Context, to io.Writer) error {
	if _, err := io.WriteString(to, o.text[:len(o.text)/2]); err != nil || o.cut.Load() {
		return errors.Join(err, errors.New("the agent is killed"))
	}
	_, err := io.WriteString(to, o.text[len(o.text)/2:])
	return err
}

// ready plays the host of a download: it says that it is ready, and answers control planes.
func (w world) ready(id string, of *offered) {
	w.Helper()
	o := w.operation(id, "make")
	host, job := o.Notes[backup.NoteHost], o.Notes[backup.NoteJob]
	ca, err := w.Home.CA()
	w.must(err)
	pair, err := ca.Issue(certs.Subject{CommonName: "agent:" + host})
	w.must(err)
	config, err := pair.ServerTLS()
	w.must(err)
	config.ClientAuth = tls.RequireAndVerifyClientCert
	server := httptest.NewUnstartedServer(hostapi.FetchHandler(func(asked string) (hostapi.Offer, error) {
		if asked != job {
			return nil, fmt.Errorf("asked for %s", asked)
		}
		return of, nil
	}, slog.New(slog.DiscardHandler)))
	server.Listener = tls.NewListener(server.Listener, config)
	server.Start()
	w.Cleanup(server.Close)
	record, err := state.Get[member.Host](w.Context(), w.Store, state.Host(host))
	w.must(err)
	record.Value.Listen = server.Listener.Addr().String()
	asked, err := state.Get[member.Job](w.Context(), w.Store, state.Job(host, job))
	w.must(err)
	w.put(state.Put(state.Host(host), record.Value), state.Put(state.JobReport(host, job), member.JobReport{
		Name: job, State: member.JobRuns, Asked: asked.Revision, Result: json.RawMessage(`{"files":1,"bytes":2}`),
	}))
	w.operation(id, backup.StepServe)
}

func (w world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// operation waits until an operation is in a step, and a host was asked.
func (w world) operation(id, step string) operation.Record {
	w.Helper()
	var o operation.Record
	testkit.Eventually(w, 20*time.Second, func() error {
		r, err := state.Get[operation.Record](w.Context(), w.Store, state.Operation(id))
		if err != nil || r.Value.Step != step {
			return errors.Join(err, fmt.Errorf("%+v", r.Value))
		}
		o = r.Value
		_, err = state.Get[member.Job](w.Context(), w.Store, state.Job(o.Notes[backup.NoteHost], o.Notes[backup.NoteJob]))
		return err
	})
	return o
}

func (w world) downloads(in admin.SnapshotDownloadRequest) admin.SnapshotDownload {
	w.Helper()
	var out admin.SnapshotDownload
	if err := w.Client.Admin(w.Context(), admin.VerbSnapshotDownload, in, &out); err != nil {
		w.Fatalf("%+v: %v", in, err)
	}
	return out
}

func (w world) fetch(id string) (string, error) {
	w.Helper()
	in, err := w.Client.Fetch(w.Context(), admin.VerbSnapshotFetch, admin.SnapshotFetchRequest{Operation: id})
	if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	return string(text), err
}

func TestADownload(t *testing.T) {
	w := newWorld(t)
	in := admin.SnapshotDownloadRequest{Snapshot: "last", ID: "download-last-1", Format: "directory", DryRun: true}
	if dry := w.downloads(in); dry.Operation != "" || dry.Room != 220 || dry.Encrypted || dry.Snapshot.Name != "last" {
		t.Errorf("%+v", dry)
	}
	if _, err := state.Get[operation.Record](t.Context(), w.Store, state.Operation(in.ID)); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a dry run begins something: %v", err)
	}
	in.DryRun = false
	if begun := w.downloads(in); begun.Operation != in.ID {
		t.Errorf("%+v", begun)
	}
	again := in
	again.ID = "download-last-2"
	if joined := w.downloads(again); joined.Operation != in.ID {
		t.Errorf("the same download is begun twice: %+v", joined)
	}
	other := again
	other.Format = "dump"
	if begun := w.downloads(other); begun.Operation != other.ID {
		t.Errorf("another download is taken for the same: %+v", begun)
	}
	if _, err := w.fetch(in.ID); !client.IsCode(err, admin.CodeNotReady) || !strings.Contains(err.Error(), "howdah operations show") {
		t.Errorf("before it is ready: %v", err)
	}

	of := &offered{text: strings.Repeat("data of a database ", 10_000)}
	w.ready(in.ID, of)
	of.cut.Store(true)
	if text, err := w.fetch(in.ID); !errors.Is(err, hostapi.ErrCut) || len(text) >= len(of.text) {
		t.Errorf("cut off: %d bytes, %v", len(text), err)
	}
	of.cut.Store(false)
	if text, err := w.fetch(in.ID); err != nil || text != of.text {
		t.Errorf("%d of %d bytes: %v", len(text), len(of.text), err)
	}
	if of.takes.Load() != 0 {
		t.Error("it is taken before the client says so")
	}
	w.must(w.Client.Admin(t.Context(), admin.VerbSnapshotFetch, admin.SnapshotFetchRequest{Operation: in.ID, Taken: true}, &admin.Nothing{}))
	if of.takes.Load() != 1 {
		t.Errorf("it is taken %d times", of.takes.Load())
	}
	for _, id := range []string{"download-nothing", "../x", ""} {
		if _, err := w.fetch(id); !client.IsCode(err, admin.CodeOperationNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestRefusedDownloads(t *testing.T) {
	w := newWorld(t)
	w.snapshot("secret", func(s *backup.Snapshot) { s.KMSKey = "key-1" })
	w.snapshot("gone", func(s *backup.Snapshot) { s.Label = "G" })
	const id = "download-1"
	for _, test := range []struct {
		in    admin.SnapshotDownloadRequest
		code  string
		words []string
	}{
		{admin.SnapshotDownloadRequest{Snapshot: "nothing", ID: id, Format: "dump"}, rds.ErrDBSnapshotNotFound, []string{"howdah snapshot list"}},
		{admin.SnapshotDownloadRequest{Snapshot: "broken", ID: id, Format: "dump"}, admin.CodeDownloadRefused, []string{"failed", "howdah snapshot show broken"}},
		{admin.SnapshotDownloadRequest{Snapshot: "gone", ID: id, Format: "dump"}, admin.CodeDownloadRefused, []string{"repository default"}},
		{admin.SnapshotDownloadRequest{Snapshot: "secret", ID: id, Format: "dump"}, admin.CodeDownloadEncrypted, []string{"not", "--unencrypted-ok"}},
		{admin.SnapshotDownloadRequest{Snapshot: "last", ID: id, Format: "zip"}, admin.CodeInvalidRequest, []string{"directory, or dump"}},
		{admin.SnapshotDownloadRequest{Snapshot: "last", ID: id, Format: "directory", Database: "shop"}, admin.CodeInvalidRequest, []string{"all databases"}},
		{admin.SnapshotDownloadRequest{Snapshot: "last", ID: "copy-1", Format: "dump"}, admin.CodeInvalidRequest, []string{"download-"}},
	} {
		err := w.Client.Admin(t.Context(), admin.VerbSnapshotDownload, test.in, &admin.SnapshotDownload{})
		e, ok := errors.AsType[*client.Error](err)
		if !ok || e.Code != test.code {
			t.Errorf("%+v: %v, want %s", test.in, err, test.code)
			continue
		}
		for _, word := range test.words {
			if !strings.Contains(e.Message+"\n"+e.Hint, word) {
				t.Errorf("%+v: %q with %q says nothing of %q", test.in, e.Message, e.Hint, word)
			}
		}
	}
	ok := w.downloads(admin.SnapshotDownloadRequest{Snapshot: "secret", ID: id, Format: "dump", Verifiers: true, UnencryptedOK: true})
	r, err := state.Get[operation.Record](t.Context(), w.Store, state.Operation(ok.Operation))
	if err != nil || !ok.Encrypted || !strings.Contains(string(r.Value.Args), `"encrypted":true`) || !strings.Contains(string(r.Value.Args), `"verifiers":true`) {
		t.Errorf("%+v: %+v, %v", ok, r.Value, err)
	}
	err = w.Client.Admin(t.Context(), admin.VerbSnapshotDownload, admin.SnapshotDownloadRequest{Snapshot: "cluster/last", ID: id, Format: "dump"}, &admin.SnapshotDownload{})
	if !client.IsCode(err, rds.ErrDBClusterSnapshotNotFound) {
		t.Errorf("a cluster's: %v", err)
	}
}

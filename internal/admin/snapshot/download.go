package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/view"
)

// prefix is what the ids of downloads begin with.
const prefix = "download-"

// download has the data of a snapshot be made ready, or says what that would take.
func (s *service) download(ctx context.Context, c front.Call, in admin.SnapshotDownloadRequest) (out admin.SnapshotDownload, err error) {
	if err := checkDownload(in); err != nil {
		return out, err
	}
	if err := s.Records.State.Fresh(ctx); err != nil {
		return out, err
	}
	err = s.Records.State.Retry(ctx, func() error {
		l := s.Records.Of(c.Account)
		_, shot, err := find(l, c, in.Snapshot)
		if err != nil {
			return hinted(err, in.Snapshot)
		}
		asked := backup.Downloading{Form: backup.DownloadForm(in.Format), Only: in.Database, Verifiers: in.Verifiers}
		out = admin.SnapshotDownload{Snapshot: Shown(shot), Format: in.Format, Database: in.Database, Encrypted: encrypted(shot), DryRun: in.DryRun}
		held, err := s.held(shot)
		if err != nil {
			return err
		}
		out.Room = asked.DownloadRoom() * held.Value.Size
		if in.DryRun {
			return nil
		}
		if out.Encrypted && !in.UnencryptedOK {
			return admin.NewError(admin.CodeDownloadEncrypted, fmt.Sprintf("The storage of %s was encrypted, and what is downloaded of %s is not.", out.Snapshot.Database, shot.Name),
				"say that this is all right: --unencrypted-ok")
		}
		args := backup.DownloadArgs{Snapshot: shot.Name, Repository: shot.Repository, Label: shot.Label, Encrypted: out.Encrypted, Downloading: asked}
		return s.begin(ctx, c, in.ID, shot, held, args, &out)
	})
	return out, err
}

func checkDownload(in admin.SnapshotDownloadRequest) error {
	form := backup.DownloadForm(in.Format)
	switch {
	case form != backup.DataDirectory && form != backup.Dump:
		return invalid(fmt.Sprintf("%.40q is no format of a download.", in.Format), "give directory, or dump")
	case in.Database != "" && form != backup.Dump:
		return invalid("A data directory has all databases.", "leave the database away, or download a dump")
	case !in.DryRun && (!operation.ValidID(in.ID) || !strings.HasPrefix(in.ID, prefix)):
		return invalid(fmt.Sprintf("%.64q is no id for this operation.", in.ID), "it begins with "+prefix+", and has at most 63 lower-case letters, digits and hyphens")
	}
	return nil
}

func invalid(message, hint string) error {
	return admin.NewError(admin.CodeInvalidRequest, message, hint)
}

func refused(hint, format string, args ...any) error {
	return admin.NewError(admin.CodeDownloadRefused, fmt.Sprintf(format, args...), hint)
}

// encrypted reports whether the storage of the database was.
func encrypted(s backup.Snapshot) bool { return s.KMSKey != "" || s.Common().StorageKey != "" }

// held returns the backup that a snapshot has.
func (s *service) held(shot backup.Snapshot) (state.Record[backup.Backup], error) {
	if shot.State != backup.Available {
		return state.Record[backup.Backup]{}, refused("howdah snapshot show "+shot.Name, "The snapshot %s cannot be downloaded: it is %s.", shot.Name, shot.State)
	}
	r, err := state.Load[backup.Backup](s.Records.State.Cache, state.Backup(shot.Holder(), shot.Repository, shot.Label))
	switch {
	case errors.Is(err, state.ErrNotFound):
		return r, refused("see `howdah snapshot list`", "The backup of the snapshot %s is not in the repository %s any more.", shot.Name, shot.Repository)
	case err == nil && r.Value.Damaged != "":
		return r, refused("download another one", "The backup of the snapshot %s is damaged: %s.", shot.Name, r.Value.Damaged)
	}
	return r, err
}

// begin begins the operation, unless the same download is under way.
func (s *service) begin(
	ctx context.Context, c front.Call, id string, shot backup.Snapshot, held state.Record[backup.Backup], args backup.DownloadArgs, out *admin.SnapshotDownload,
) error {
	about := operation.About{Scope: shot.Scope, Type: event.Instance, Name: shot.Common().Name, Database: shot.Holder()}
	if shot.Cluster != nil {
		about.Type = event.Cluster
	}
	cache := s.Records.State.Cache
	for _, r := range state.ViewAll[operation.Record](cache, state.OperationRoot) {
		same := r.Value.Kind == backup.Download.Name && r.Value.About == about
		switch {
		case r.Value.ID == id && !same:
			return invalid(fmt.Sprintf("The operation %s is another one.", id), "choose another id")
		case same && (r.Value.ID == id || !r.Value.State.Ended() && r.Value.State == operation.Running && asksFor(r.Value, args)):
			out.Operation = r.Value.ID
			return nil
		}
	}
	r, err := operation.New(id, backup.Download, about, args, c.Now)
	if err != nil {
		return err
	}
	op, err := view.Begin(cache, r)
	if errors.Is(err, operation.ErrTooMany) {
		return refused("see `howdah operations list`, and try again when some have ended", "Too many operations are under way: %s.", err)
	}
	if err != nil {
		return err
	}
	out.Operation = id
	s.Log.Info("download a snapshot", "snapshot", shot.Name, "format", args.Form, "id", id, "by", c.Who.Key)
	return s.Records.State.Commit(ctx, op, state.Unchanged(held.Key, held.Revision))
}

// asksFor reports whether an operation was asked for the same as args.
func asksFor(r *operation.Record, args backup.DownloadArgs) bool {
	var has backup.DownloadArgs
	return json.Unmarshal(r.Args, &has) == nil && has == args
}

// fetch answers what an operation has made ready, or ends it.
func (s *service) fetch(ctx context.Context, c front.Call, in admin.SnapshotFetchRequest) (any, error) {
	if err := s.Records.State.Fresh(ctx); err != nil {
		return nil, err
	}
	if !operation.ValidID(in.Operation) {
		return nil, unknown(in.Operation)
	}
	r, err := state.View[operation.Record](s.Records.State.Cache, state.Operation(in.Operation))
	if errors.Is(err, state.ErrNotFound) || err == nil && (r.Value.Kind != backup.Download.Name || r.Value.About.Account != c.Account) {
		return nil, unknown(in.Operation)
	}
	if err != nil {
		return nil, err
	}
	o := r.Value
	if err := spared(c, o); err != nil {
		return nil, err
	}
	if o.State.Ended() || o.Step != backup.StepServe {
		return nil, notReady(o.ID)
	}
	host, job := o.Notes[backup.NoteHost], o.Notes[backup.NoteJob]
	address := s.Records.Looks.AgentAddress(host)
	if in.Taken {
		return admin.Nothing{}, fetched(o.ID, s.Hosts.Taken(ctx, host, address, job))
	}
	s.Log.Info("send what is downloaded", "id", o.ID, "host", host, "by", c.Who.Key)
	return verb.Stream{Open: func(ctx context.Context) (io.ReadCloser, int64, error) {
		body, err := s.Hosts.Fetch(ctx, host, address, job)
		if err != nil {
			return nil, 0, fetched(o.ID, err)
		}
		return body, body.Size, nil
	}}, nil
}

// spared refuses what was made ready of a snapshot that the caller's policies deny.
func spared(c front.Call, o *operation.Record) error {
	var args backup.DownloadArgs
	if err := json.Unmarshal(o.Args, &args); err != nil {
		return fmt.Errorf("read what is downloaded: %w", err)
	}
	kind := snapshot.Instance
	if o.About.Type == event.Cluster {
		kind = snapshot.Cluster
	}
	return c.Spared(o.About.Scope.ARN(kind.ARN, args.Snapshot))
}

// fetched gives an error of a host a code.
func fetched(id string, err error) error {
	if errors.Is(err, hostapi.ErrNotReady) || errors.Is(err, hostapi.ErrNoHost) {
		return notReady(id)
	}
	if err != nil {
		return admin.NewError(admin.CodeUnavailable, "The host does not let it be fetched: "+err.Error()+".", "howdah operations show "+id)
	}
	return nil
}

func notReady(id string) error {
	return admin.NewError(admin.CodeNotReady, "Nothing of "+id+" can be fetched now.", "howdah operations show "+id)
}

func unknown(id string) error {
	return admin.NewError(admin.CodeOperationNotFound, fmt.Sprintf("There is no download %.64q.", id), "see `howdah operations`")
}

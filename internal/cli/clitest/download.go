package clitest

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"howdah/internal/admin"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/backup"
)

// downloadSnapshot answers the verb that begins downloads. The storage of shop was encrypted.
func (f *Fake) downloadSnapshot(body []byte) (any, *admin.Error) {
	var in admin.SnapshotDownloadRequest
	read(body, &in)
	out := admin.SnapshotDownload{Snapshot: f.snapshots()[0], Format: in.Format, Database: in.Database, Room: 2 << 30, DryRun: in.DryRun}
	for _, s := range f.snapshots() {
		if s.Name == in.Snapshot {
			out.Snapshot = s
		}
	}
	out.Encrypted = out.Snapshot.Database == "shop"
	if in.DryRun {
		return out, nil
	}
	if out.Encrypted && !in.UnencryptedOK {
		return nil, admin.NewError(admin.CodeDownloadEncrypted, "The storage of shop was encrypted, and what is downloaded of "+in.Snapshot+" is not.", "say that this is all right: --unencrypted-ok")
	}
	out.Operation = in.ID
	s := out.Snapshot
	s.Operation = in.ID
	if in.Database == "fails" {
		s.Name = "fails"
	}
	f.begins(s, "download-snapshot", []admin.Operation{
		{Step: "place", Trouble: "no host has 2048 MiB free, twice the size of the database"}, {Step: "make"}, {Step: "make", Unit: "bytes of files"}, {Step: "make", Unit: "bytes of wal"},
		{Step: "make", Unit: "databases dumped"}, {Step: "serve"},
	})
	if s.Name != "fails" { // it waits until somebody fetches it
		f.working = f.working[:len(f.working)-1]
	}
	return out, nil
}

var errCut = errors.New("cut off")

// sendSnapshot answers the verb that fetches what a download made ready. The first answer is cut off
// in the middle.
func (f *Fake) sendSnapshot(w http.ResponseWriter, r *http.Request, body []byte) {
	var in admin.SnapshotFetchRequest
	read(body, &in)
	if in.Taken {
		_ = json.NewEncoder(w).Encode(admin.Nothing{})
		return
	}
	f.fetches++
	files := map[string]string{"PG_VERSION": "15\n", "global/pg_control": "control", "postgresql.conf": "of initdb"}
	note := backup.DownloadNote{
		Form: backup.DataDirectory, Major: 15, Superuser: "rdsadmin", Logins: []string{"boss", "rdsadmin"}, Databases: []string{"postgres", "shop"},
		Ready: backup.Ready{Files: len(files)},
	}
	for _, text := range files {
		note.Bytes += int64(len(text))
	}
	_ = hostapi.SendSummed(r.Context(), w, note.Bytes, func(_ context.Context, to io.Writer) error {
		text, err := json.Marshal(note)
		if err != nil {
			return err
		}
		out := tar.NewWriter(to)
		add := func(name, text string) {
			err = errors.Join(err, out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text))}))
			_, failed := io.WriteString(out, text)
			err = errors.Join(err, failed)
		}
		add(backup.DownloadNoteName, string(text))
		err = errors.Join(err, out.WriteHeader(&tar.Header{Name: "data/global/", Typeflag: tar.TypeDir}))
		for _, name := range []string{"PG_VERSION", "global/pg_control", "postgresql.conf"} {
			if f.fetches == 1 && name == "postgresql.conf" {
				return errors.Join(err, errCut)
			}
			add("data/"+name, files[name])
		}
		return errors.Join(err, out.Close())
	})
}

package admin

// SnapshotCopyRequest asks for a copy of a snapshot of the caller's account and region, there too.
type SnapshotCopyRequest struct {
	// Snapshot is a name, or instance/NAME or cluster/NAME where both kinds have it.
	Snapshot string `json:"snapshot"`
	Name     string `json:"name"` // of the copy
	// Repository is where the copy is to be. "" stands for the one that has the snapshot: then the
	// copy is a second name for the same files.
	Repository string `json:"repository,omitempty"`
	DryRun     bool   `json:"dry_run,omitempty"`
}

// SnapshotCopy is a copy that was begun, or what would be copied.
type SnapshotCopy struct {
	Snapshot Snapshot `json:"snapshot"`
	// From is the name of the snapshot that it is a copy of, and FromRepository where that is.
	From           string `json:"from"`
	FromRepository string `json:"from_repository"`
	// Bytes is about how much is copied. It is 0 if the repository has the data already.
	Bytes  int64 `json:"bytes"`
	DryRun bool  `json:"dry_run,omitempty"`
}

// SnapshotDownloadRequest asks for the data of a snapshot of the caller's account and region to be made
// ready on a host, so that they can be fetched.
type SnapshotDownloadRequest struct {
	Snapshot string `json:"snapshot"` // as in SnapshotCopyRequest
	// ID is that of the operation, as the caller chose it. If the same download is under way already,
	// that is answered instead.
	ID string `json:"id"`
	// Format is directory or dump. Database is the one that a dump is to have; "": all of them.
	Format   string `json:"format"`
	Database string `json:"database,omitempty"`
	// Verifiers says that the SCRAM verifiers of passwords come along.
	Verifiers bool `json:"verifiers,omitempty"`
	// UnencryptedOK says that the caller knows that what is fetched of an encrypted database is not
	// encrypted.
	UnencryptedOK bool `json:"unencrypted_ok,omitempty"`
	DryRun        bool `json:"dry_run,omitempty"`
}

// SnapshotDownload is what is made ready, or would be.
type SnapshotDownload struct {
	Snapshot  Snapshot `json:"snapshot"`
	Operation string   `json:"operation,omitempty"`
	Format    string   `json:"format"`
	Database  string   `json:"database,omitempty"`
	// Room is how many bytes have to be free on a host.
	Room      int64 `json:"room"`
	Encrypted bool  `json:"encrypted"` // the database's storage was
	DryRun    bool  `json:"dry_run,omitempty"`
}

// SnapshotFetchRequest fetches what an operation of SnapshotDownload has made ready, while that is in
// the step serve. The answer is a tar archive, with the SHA-256 of it in a trailer: see package
// hostapi. What has no sum is not whole. Taken says instead that the caller has all of it: the
// operation ends.
type SnapshotFetchRequest struct {
	Operation string `json:"operation"`
	Taken     bool   `json:"taken,omitempty"`
}

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

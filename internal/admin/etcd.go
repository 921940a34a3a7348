package admin

// What can be done to etcd.
const (
	EtcdMend    = "mend" // all that helps
	EtcdCompact = "compact"
	EtcdDefrag  = "defrag"
	EtcdDisarm  = "disarm"
)

// EtcdRequest asks for a deed that makes room in etcd.
type EtcdRequest struct {
	Do     string `json:"do"`
	Member string `json:"member,omitempty"` // of defrag
	// DryRun only asks what mend would do.
	DryRun bool `json:"dry_run,omitempty"`
}

// EtcdAnswer says in order what was done, or would be done, and how the members are now.
type EtcdAnswer struct {
	Deeds   []string     `json:"deeds"`
	Members []EtcdMember `json:"members"`
}

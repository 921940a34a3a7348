package look

// Quotas that hold. Those of RDS that can be raised there are what they are at first.
const (
	MaxSubnetGroups = 50
	MaxSubnets      = 20 // of one group
	MaxOptionGroups = 20
	MaxRoles        = 5 // of one instance or cluster
	// MaxFollowers is RDS's limit of read replicas of one source, and of readers of
	// one cluster.
	MaxFollowers = 15
	// MaxEndpoints is RDS's limit of custom endpoints of one cluster.
	MaxEndpoints = 5
	// MaxSnapshots is RDS's limit of manual snapshots of a kind in an account and region, and MaxShared
	// that of accounts which one snapshot is shared with.
	MaxSnapshots = 100
	MaxShared    = 20
	// MaxEventSubscriptions is RDS's limit in an account and region.
	MaxEventSubscriptions = 20
)

package event

// These are source types of RDS for which Howdah raises no events, or not yet.
const (
	SecurityGroup SourceType = "db-security-group"
	EngineVersion SourceType = "custom-engine-version"
	Proxy         SourceType = "db-proxy"
	BlueGreen     SourceType = "blue-green-deployment"
	ShardGroup    SourceType = "db-shard-group"
	ZeroETL       SourceType = "zero-etl"
)

// categories holds the categories of each source type in RDS's order (RDS user guide, "Amazon RDS
// event categories and event messages").
var categories = map[SourceType][]string{
	Instance: {
		"availability", "backtrack", "backup", "configuration change", "creation", "deletion", "failover", "failure", "low storage",
		"maintenance", "notification", "read replica", "recovery", "restoration", "security", "security patching",
	},
	Cluster: {
		"configuration change", "creation", "deletion", "failover", "failure", "global failover", "maintenance", "notification", "read replica",
	},
	ParameterGroup:  {"configuration change"},
	SecurityGroup:   {"configuration change", "failure"},
	Snapshot:        {"creation", "deletion", "failure", "notification", "restoration"},
	ClusterSnapshot: {"backup", "failure", "notification"},
	EngineVersion:   {"creation", "deletion", "failure"},
	Proxy:           {"configuration change", "creation", "deletion", "failure"},
	BlueGreen:       {"creation", "deletion", "failure", "notification"},
	ShardGroup:      {"failure", "maintenance", "notification"},
	ZeroETL:         {"creation", "deletion", "failure", "notification"},
}

// SourceTypes lists all source types that RDS has, in the order of its model.
var SourceTypes = []SourceType{
	Instance, ParameterGroup, SecurityGroup, Snapshot, Cluster, ClusterSnapshot, EngineVersion, Proxy, BlueGreen, ShardGroup, ZeroETL,
}

// Categories returns the categories of a source type in RDS's order, and nil for an unknown type.
// Callers must not change the slice.
func Categories(t SourceType) []string { return categories[t] }

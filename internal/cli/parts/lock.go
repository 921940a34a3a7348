package parts

// Names of the locks that agents and edges hold in their directories.
const (
	AgentLock = "agent.lock"
	EdgeLock  = "edge.lock"
)

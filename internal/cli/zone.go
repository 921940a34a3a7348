package cli

// Zones are the hosts of `howdah up`, each an Availability Zone of its own.
var Zones = []string{"a", "b", "c"}

// AgentNames returns the names of the agents of `howdah up`.
func AgentNames() []string {
	var names []string
	for _, zone := range Zones {
		names = append(names, "agent-"+zone)
	}
	return names
}

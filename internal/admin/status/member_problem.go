package status

import (
	"fmt"
	"slices"
	"strings"

	"howdah/internal/admin/database"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// explain says what a member's problem is, and the command that mends it.
func (s *service) explain(d database.Subject, m plan.Placed, r member.Report) (command, text string) {
	name := d.Common.Name
	switch r.Problem {
	case member.StorageFull:
		return growCommand(d), "its storage is used up"
	case member.StorageLow:
		return growCommand(d), "less than a tenth of its storage is free"
	case member.DiskFull:
		return "howdah host drain " + m.Host, "the disk of the host is full: free some space there, or move the members away"
	case member.NoVersion:
		return fmt.Sprintf("scripts/install --postgresql %d", d.Want.Major), fmt.Sprintf("PostgreSQL %d is not installed on the host", d.Want.Major)
	case member.PortTaken:
		return "", "something else listens on its port; it moves to another one"
	case member.SlotLost:
		return s.rebuildCommand(d, r.Detail), "a replica fell further behind than the WAL that is kept for it (" + r.Detail + ")"
	case member.NotReplicating:
		return "howdah db show " + name, "it does not receive from the primary"
	case member.CommitsWait:
		return "howdah db show " + name, "commits wait for a standby to confirm them" + inBrackets(r.Detail)
	case member.StartFails:
		return "howdah logs " + name, "it does not start" + inBrackets(r.Detail)
	case member.RestoreFails:
		return "howdah db delete " + name, "its data cannot be restored" + inBrackets(r.Detail) + ": delete it, and restore what can be had"
	case member.SourceAway:
		source, command := "another database", "howdah db list"
		if from := d.Common.Origin; from != nil {
			source, command = from.From, "howdah db show "+from.From
		}
		return command, "it is to be a clone of " + source + ", which does not answer on this host" + inBrackets(r.Detail) + ": it is tried again"
	case member.NoRoom:
		return "howdah host drain " + m.Host, "it cannot go on with the data that it has, which are kept until a standby is in sync, and there is no room for a copy beside them" +
			inBrackets(r.Detail) + ": free some space there, or have it built elsewhere"
	case member.CannotContain:
		return "", "its processes could not be killed" + inBrackets(r.Detail) + ": end them by hand on the host, or reboot it"
	case member.Hangs:
		return "howdah host drain " + m.Host, "its PostgreSQL hangs" + inBrackets(r.Detail) + ": look at the disk of the host; a standby that is in sync takes over"
	case member.NoKey:
		return "", "its storage is encrypted, and its host does not get the key" + inBrackets(r.Detail) + ": it starts as soon as a control plane gives it"
	case member.NotEncryptable:
		return "howdah host drain " + m.Host, "its storage is to be encrypted, and is not" + inBrackets(r.Detail) + ": have it built on a host that can"
	case member.NoModule:
		return restartCommand(d, m), "its PostgreSQL runs without the module howdah" + inBrackets(r.Detail) + ": restart it, when that may be"
	case member.BadAssignment:
		return "", "the agent refused its assignment" + inBrackets(r.Detail) + ": please report this"
	default:
		return "howdah db show " + name, string(r.Problem) + inBrackets(r.Detail)
	}
}

// restartCommand returns the command that restarts a member which lacks what only a start brings. A
// primary is restarted by a failover if another member may lead. A reboot also restarts standbys
// that lack it.
func restartCommand(d database.Subject, m plan.Placed) string {
	if m.Name == d.Leader && len(d.Sync.Standbys) > 0 {
		return "howdah db failover " + d.Common.Name
	}
	return "howdah db reboot " + d.Common.Name
}

// growCommand returns the command that doubles the storage of an instance.
func growCommand(d database.Subject) string {
	if d.Instance == nil {
		return "howdah db show " + d.Common.Name
	}
	return fmt.Sprintf("howdah db modify %s --storage %d --apply-immediately", d.Common.Name, 2*d.Instance.Storage)
}

// rebuildCommand returns a command that names the database whose slot was lost, if the slot belongs
// to a database.
func (s *service) rebuildCommand(d database.Subject, slots string) string {
	lost := strings.Split(slots, ", ")
	for _, r := range state.ViewAll[spec.Instance](s.Cache, state.InstanceRoot) {
		if i := r.Value; i.Follows() && i.Source == d.Common.ResourceID && slices.Contains(lost, plan.SlotName(i.ResourceID)) {
			return "howdah db delete " + i.Name
		}
	}
	return "howdah db show " + d.Common.Name
}

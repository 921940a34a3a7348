package param

import "slices"

// Version is a value that a group gave a parameter at some time.
type Version struct {
	// Serial is that of the group after the change.
	Serial int64 `json:"serial"`
	// Value is nil where the parameter was set back to its default.
	Value *string `json:"value"`
	// Waits for a reboot of each instance, as asked; otherwise it is in force at once.
	Waits bool `json:"waits,omitempty"`
	// Static: PostgreSQL itself waits for its next start, and says so.
	Static bool `json:"static,omitempty"`
}

// Values are the parameters that a group sets, with what they were before as far as
// some instance may still run with it. Oldest first.
type Values map[string][]Version

// keptVersions bounds what is kept for instances that are not rebooted.
const keptVersions = 8

// Set returns the values with one more change; v itself stays as it is.
func (v Values) Set(name string, change Version) Values {
	changed := Values{}
	for n, versions := range v {
		changed[n] = versions
	}
	versions := append(slices.Clone(v[name]), change)
	now := !change.Waits || change.Static
	if now {
		versions = []Version{change}
	}
	versions = versions[max(0, len(versions)-keptVersions):]
	if now && change.Value == nil {
		delete(changed, name)
		return changed
	}
	changed[name] = versions
	return changed
}

// Latest is the value that a group shows, or nil.
func (v Values) Latest(name string) *Version {
	versions := v[name]
	if len(versions) == 0 || versions[len(versions)-1].Value == nil {
		return nil
	}
	return &versions[len(versions)-1]
}

// InForce are the values for an instance that took the group over at a serial. A
// static one is always the newest: PostgreSQL is told of it and waits by itself.
func (v Values) InForce(taken int64) map[string]string {
	all := map[string]string{}
	for name, versions := range v {
		for i := len(versions) - 1; i >= 0; i-- {
			c := versions[i]
			if c.Waits && !c.Static && c.Serial > taken {
				continue
			}
			if c.Value != nil {
				all[name] = *c.Value
			}
			break
		}
	}
	return all
}

// Statics are the newest values of static parameters.
func (v Values) Statics() map[string]string { return v.pick(true) }

// Dynamics are the others that are in force.
func (v Values) Dynamics(taken int64) map[string]string {
	all := v.InForce(taken)
	for name := range v.pick(true) {
		delete(all, name)
	}
	return all
}

func (v Values) pick(static bool) map[string]string {
	all := map[string]string{}
	for name, versions := range v {
		if c := versions[len(versions)-1]; c.Static == static && c.Value != nil {
			all[name] = *c.Value
		}
	}
	return all
}

// Waiting: a change of a dynamic parameter waits for the reboot of an instance that
// took the group over at a serial.
func (v Values) Waiting(taken int64) bool {
	for _, versions := range v {
		if c := versions[len(versions)-1]; c.Waits && !c.Static && c.Serial > taken {
			return true
		}
	}
	return false
}

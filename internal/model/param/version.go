package param

import "slices"

// Version is one value that a group gave a parameter.
type Version struct {
	// Serial is the serial of the group after this change.
	Serial int64 `json:"serial"`
	// Value is nil if the parameter was set back to its default.
	Value *string `json:"value"`
	// Waits says that the value takes effect on each instance with its next reboot, as the user
	// asked. Otherwise it is in force at once.
	Waits bool `json:"waits,omitempty"`
	// Static says that PostgreSQL itself keeps the value waiting until its next start, and reports
	// that.
	Static bool `json:"static,omitempty"`
}

// Values holds the parameters that a group sets. For each it has the newest value and those before
// it that some instance may still run with, oldest first.
type Values map[string][]Version

// keptVersions limits how many values are kept for instances that are not rebooted.
const keptVersions = 8

// Set returns the values with one more change. It does not change v.
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

// Latest returns the value that a group shows, or nil if there is none.
func (v Values) Latest(name string) *Version {
	versions := v[name]
	if len(versions) == 0 || versions[len(versions)-1].Value == nil {
		return nil
	}
	return &versions[len(versions)-1]
}

// InForce returns the values for an instance that took the group over at a serial. For a static
// parameter it is always the newest value: PostgreSQL is told of it, and itself waits for a
// restart.
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

// Statics returns the newest values of static parameters.
func (v Values) Statics() map[string]string { return v.pick(true) }

// Dynamics returns the values of dynamic parameters that are in force for an instance that took the
// group over at a serial.
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

// Waiting reports whether a change of a dynamic parameter waits for the reboot of an instance that
// took the group over at a serial.
func (v Values) Waiting(taken int64) bool {
	for _, versions := range v {
		if c := versions[len(versions)-1]; c.Waits && !c.Static && c.Serial > taken {
			return true
		}
	}
	return false
}

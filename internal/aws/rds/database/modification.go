package database

import (
	"slices"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/identity/secret"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Modification is the change of a record in the making. Both the API and the
// maintenance window make one; what it gathers is committed in one transaction.
type Modification struct {
	*Sight
	front.Call
	Kind event.SourceType

	Began  []look.Told // events of what begins now
	Done   []string    // events for when it is done
	words  []string    // statuses that its parts ask for
	Before spec.Values // what it replaces
	// Autoscales: storage grows because little of it was left.
	Autoscales bool
	// Restarts: PostgreSQL is restarted for another reason than a new class.
	Restarts bool
	Ops      []state.Op    // on other records
	Rotated  secret.Secret // with another password
	// Owner is the cluster of an instance, once the modification changes it too. Take it
	// from ClusterOf. It is written with the instance.
	Owner *state.Record[spec.Cluster]
}

// ClusterOf is the record of an instance's cluster, to be changed; nil: it has none.
func (m *Modification) ClusterOf(i spec.Instance) *spec.Cluster {
	if m.Owner == nil {
		r, ok := m.ClusterRecord(i.Cluster)
		if !ok {
			return nil
		}
		r.Value.Generation++
		m.Owner = &r
	}
	return &m.Owner.Value
}

// Work notes something that the planner carries out.
func (m *Modification) Work(status, began, done string) {
	m.words = append(m.words, status)
	if began != "" {
		m.Began = append(m.Began, look.Event(began))
	}
	if done != "" {
		m.Done = append(m.Done, done)
	}
}

// Finish counts the modification, if it is one that has to be carried out.
func (m *Modification) Finish(c *spec.Common) {
	c.Generation++
	if len(m.words) > 0 {
		look.Begin(c, m.word(), &m.Before, m.Done...)
	}
}

// word is the word of the only part, or "modifying" of several.
func (m *Modification) word() string {
	words := slices.Compact(slices.Sorted(slices.Values(m.words)))
	if len(words) == 1 {
		return words[0]
	}
	return plan.Modifying
}

const Renaming = "renaming"

const resetting = "resetting-master-credentials"

// password sets a new one. It never waits for the window, as on RDS.
func (m *Modification) password(c *spec.Common, password *string) error {
	if password == nil {
		return nil
	}
	m.Before.Password = true
	m.Work(resetting, "", "0016")
	return setPassword(c, *password)
}

// Port moves the endpoint. It never waits for the window, as on RDS.
func (m *Modification) Port(c *spec.Common, port *int32) error {
	if port == nil || int(*port) == c.Port {
		return nil
	}
	m.Before.Port = c.Port
	m.Work(plan.Modifying, "", "")
	c.Port = int(*port)
	return spec.CheckPort(c.Port)
}

// Retention changes the days of backups.
func (m *Modification) Retention(c *spec.Common, days *int) {
	if days == nil || *days == c.BackupRetention {
		return
	}
	switch {
	case *days == 0:
		m.Began = append(m.Began, look.Event("0028"))
	case c.BackupRetention == 0:
		m.Began = append(m.Began, look.Event(m.backupsBegin()))
	}
	c.BackupRetention = *days
}

// backupsBegin is the event for backups that begin, or would if there were a place for them.
func (m *Modification) backupsBegin() string {
	if _, ok := m.Repository(); ok && m.Kind == event.Instance {
		return "0032"
	}
	return "H004"
}

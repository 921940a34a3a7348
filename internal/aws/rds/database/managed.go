package database

import (
	"errors"

	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/identity/secret"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// ErrNotUsable: a database that is not available takes no other password.
var ErrNotUsable = errors.New("the database is not available")

// Managed is a managed password with its database.
type Managed struct {
	secret.Secret
	Record state.Record[secret.Secret] // as it was written
	Common spec.Common
	Facts  plan.Facts // of the database; see Now
}

// ManagedOf is a managed password as it was written; ok is false where nobody manages it any
// more, and the database has its owner's.
func ManagedOf(l *look.Look, r state.Record[*secret.Secret]) (m Managed, ok bool) {
	of := r.Value
	m = Managed{Secret: *of, Record: state.Copy(r)}
	if of.Cluster {
		c, exists := l.Cluster[of.Database]
		m.Common = c.Common
		return m, exists && (c.Managed || of.Until > 0)
	}
	i := l.Instance[of.Database]
	if i == nil {
		return m, false
	}
	m.Common = i.Common
	return m, i.Managed || of.Until > 0
}

// Now is it as it is now: what the database has taken since it was written counts.
func (m Managed) Now(l *look.Look) Managed {
	if m.Cluster {
		m.Facts = l.FactsOfCluster(l.Cluster[m.Database])
	} else {
		m.Facts = l.FactsOf(*l.Instance[m.Database])
	}
	m.Secret = m.Taken(Taken(m.Facts), l.Now().UTC())
	return m
}

// Gone: the database has its owner's password, and the next chore removes the secret. It is
// asked of what Now answers.
func (m Managed) Gone() bool { return m.Left(Taken(m.Facts)) }

package database

import (
	"errors"
	"time"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/identity/secret"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// The master user of a database has a password that its owner chose, or one that Howdah
// makes, keeps as a secret and changes now and then.

// SetMaster checks the master user of a new database, and keeps the password if one was
// given.
func SetMaster(c *spec.Common, name, password *string, manage *bool) error {
	if wire.Or(name, "") == "" {
		return front.Blank("MasterUsername")
	}
	c.MasterUser, c.Managed = *name, wire.Or(manage, false)
	err := spec.CheckMasterUser(*name)
	switch {
	case err != nil:
		return err
	case c.Managed && password != nil:
		return bothPasswords()
	case c.Managed:
		return nil // see firstSecret
	case wire.Or(password, "") == "":
		return front.Blank("MasterUserPassword")
	}
	return setPassword(c, *password)
}

func bothPasswords() error {
	return wire.NewError(api.ErrInvalidParameterCombination, "You can't specify MasterUserPassword when ManageMasterUserPassword is enabled: leave one of them away.")
}

// FirstSecret makes the password of a new database, if Howdah is to manage it.
func (l *Sight) FirstSecret(c *spec.Common, cluster bool, now time.Time) ([]state.Op, error) {
	if !c.Managed {
		return nil, nil
	}
	sealer, err := l.Sealer()
	if err != nil {
		return nil, err
	}
	made, password := secret.New(c.Scope, c.ResourceID, cluster, c.MasterUser, c.PasswordSerial+1, now, sealer)
	if err := setPassword(c, password); err != nil {
		return nil, err
	}
	return []state.Op{state.Swap(state.Secret(c.ResourceID), 0, made)}, nil
}

func (s *Source) Sealer() (*secret.Sealer, error) {
	key, err := s.Seal()
	if err != nil {
		return nil, err
	}
	return secret.NewSealer(key)
}

// Master is what a modification asks for the master user's password.
type Master struct {
	Password            *string
	Manage, Rotate, Now *bool
	Facts               plan.Facts // of the database
	Days                int        // how often it is to be changed from now on; 0: as before
	Token               string     // what the next version is called; "": whatever
}

// Master changes the master user's password, or who manages it. It never waits for the
// window, as on RDS.
func (m *Modification) Master(c *spec.Common, in Master) error {
	manage := wire.Or(in.Manage, c.Managed)
	if err := in.check(c.Managed); err != nil {
		return err
	}
	if in.Password != nil {
		c.PasswordSerial = max(c.PasswordSerial, Taken(in.Facts)) // restored data may have a newer one
	}
	switch {
	case manage && !c.Managed:
		return m.manageMaster(c, in)
	case wire.Or(in.Rotate, false):
		return m.rotateMaster(c, in)
	case !manage && c.Managed:
		return m.leaveMaster(c, in)
	}
	return m.password(c, in.Password)
}

// leaveMaster has the owner choose the password that Howdah managed. What the database has
// until it takes that one stays known: it may be any of the secret's.
func (m *Modification) leaveMaster(c *spec.Common, in Master) error {
	c.Managed, c.PasswordSerial = false, max(c.PasswordSerial, Taken(in.Facts))
	r, err := m.SecretOf(*c)
	if errors.Is(err, state.ErrNotFound) {
		return m.password(c, in.Password)
	}
	if err != nil {
		return err
	}
	m.Ops = append(m.Ops, state.Swap(r.Key, r.Revision, r.Value.Taken(Taken(in.Facts), m.Call.Now).Leave(c.PasswordSerial+1)))
	return m.password(c, in.Password)
}

// check refuses what does not fit together.
func (in Master) check(managed bool) error {
	combination := func(text string) error { return wire.NewError(api.ErrInvalidParameterCombination, "%s", text) }
	manage := wire.Or(in.Manage, managed)
	switch {
	case in.Manage != nil && !manage && !managed:
		if in.Password != nil {
			return nil // it is as it is, with another password
		}
		return combination("You cannot set ManageMasterUserPassword to false because the master user password is not currently managed by RDS.")
	case !manage && managed && in.Password == nil:
		return combination("MasterUserPassword must be provided when ManageMasterUserPassword is set to false.")
	case manage && in.Password != nil:
		return bothPasswords()
	case wire.Or(in.Rotate, false) && !managed:
		return combination("You can't specify RotateMasterUserPassword because the master user password is not managed in AWS Secrets Manager.")
	case wire.Or(in.Rotate, false) && !manage:
		return combination("You can't specify RotateMasterUserPassword when ManageMasterUserPassword is set to false.")
	case wire.Or(in.Rotate, false) && !wire.Or(in.Now, false):
		return combination("You must specify ApplyImmediately when you specify RotateMasterUserPassword.")
	}
	return nil
}

// manageMaster has Howdah manage a password that its owner chose.
func (m *Modification) manageMaster(c *spec.Common, in Master) error {
	sealer, err := m.Sealer()
	if err != nil {
		return err
	}
	r, err := m.SecretOf(*c)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	if err == nil && !r.Value.Left(Taken(in.Facts)) {
		// It managed the password before, and the database has not taken the owner's.
		c.Managed, c.PasswordSerial = true, max(c.PasswordSerial, Taken(in.Facts))
		next, password := r.Value.Taken(Taken(in.Facts), m.Call.Now).Rotate(c.PasswordSerial+1, "", m.Call.Now, sealer)
		m.Ops = append(m.Ops, state.Swap(r.Key, r.Revision, next))
		return m.password(c, &password)
	}
	made, password := secret.New(c.Scope, c.ResourceID, m.Kind == event.Cluster, c.MasterUser, c.PasswordSerial+1, m.Call.Now, sealer)
	c.Managed = true
	m.Ops = append(m.Ops, state.Swap(state.Secret(c.ResourceID), r.Revision, made))
	return m.password(c, &password)
}

// rotateMaster gives a managed master user another password.
func (m *Modification) rotateMaster(c *spec.Common, in Master) error {
	r, err := m.SecretOf(*c)
	if err != nil {
		return err
	}
	sealer, err := m.Sealer()
	if err != nil {
		return err
	}
	// A database that says more than the record is not believed less: what it has already it
	// does not take.
	c.PasswordSerial = max(c.PasswordSerial, Taken(in.Facts))
	have := r.Value.Taken(Taken(in.Facts), m.Call.Now)
	if have.Pending != nil && !have.Overtaken(Standing(*c, in.Facts)) {
		return m.busy(*c) // the database may take that one at any moment
	}
	next, password := have.Rotate(c.PasswordSerial+1, in.Token, m.Call.Now, sealer)
	if in.Days > 0 {
		next.Days = in.Days
	}
	m.Rotated = next
	m.Ops = append(m.Ops, state.Swap(r.Key, r.Revision, next))
	return m.password(c, &password)
}

// busy is the error for a database that is taking a password.
func (m *Modification) busy(c spec.Common) error {
	const text = "%s is taking the password of its last rotation: see the SecretStatus of its MasterUserSecret, and try again when it is active."
	if m.Kind == event.Cluster {
		return wire.NewError(rds.ErrInvalidDBClusterState, text, c.Name)
	}
	return wire.NewError(rds.ErrInvalidDBInstanceState, text, c.Name)
}

// SecretOf is the record of a managed password. One is always there: it is made with the
// record that says so.
func (s *Source) SecretOf(c spec.Common) (state.Record[secret.Secret], error) {
	return state.Load[secret.Secret](s.Looks.Cache, state.Secret(c.ResourceID))
}

// Taken is the serial of the verifier that a database has, as its primary says; 0: it has
// none that says so.
func Taken(facts plan.Facts) (serial int64) {
	primary, ok := facts.Primary()
	if !ok {
		return 0
	}
	return facts.Reports[member.ID(facts.Want.ID, primary.Name)].OwnerSerial
}

func Standing(c spec.Common, facts plan.Facts) secret.Standing {
	return secret.Standing{Verifier: c.PasswordSerial, Taken: Taken(facts)}
}

// MasterSecretOut shows whose password is managed; nil: its owner chose it.
func (l *Sight) MasterSecretOut(c spec.Common, facts plan.Facts) *rds.MasterUserSecret {
	if !c.Managed {
		return nil
	}
	r, err := l.SecretOf(c)
	if err != nil {
		return &rds.MasterUserSecret{SecretStatus: wire.Some(secret.Impaired)} // it cannot be read
	}
	return &rds.MasterUserSecret{SecretArn: wire.Some(r.Value.ARN()), SecretStatus: wire.Some(r.Value.Status(Standing(c, facts), l.Now()))}
}

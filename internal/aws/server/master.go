package server

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

// setMaster checks the master user of a new database, and keeps the password if one was
// given.
func setMaster(c *spec.Common, name, password *string, manage *bool) error {
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

// firstSecret makes the password of a new database, if Howdah is to manage it.
func (l *sight) firstSecret(c *spec.Common, cluster bool, now time.Time) ([]state.Op, error) {
	if !c.Managed {
		return nil, nil
	}
	sealer, err := l.s.secretSealer()
	if err != nil {
		return nil, err
	}
	made, password := secret.New(c.Scope, c.ResourceID, cluster, c.MasterUser, c.PasswordSerial+1, now, sealer)
	if err := setPassword(c, password); err != nil {
		return nil, err
	}
	return []state.Op{state.Swap(state.Secret(c.ResourceID), 0, made)}, nil
}

func (s *Server) secretSealer() (*secret.Sealer, error) {
	key, err := s.Home.SealKey()
	if err != nil {
		return nil, err
	}
	return secret.NewSealer(key)
}

// masterAsked is what a modification asks for the master user's password.
type masterAsked struct {
	password            *string
	manage, rotate, now *bool
	facts               plan.Facts // of the database
	days                int        // how often it is to be changed from now on; 0: as before
	token               string     // what the next version is called; "": whatever
}

// master changes the master user's password, or who manages it. It never waits for the
// window, as on RDS.
func (m *modification) master(c *spec.Common, cluster bool, in masterAsked) error {
	manage := wire.Or(in.manage, c.Managed)
	if err := in.check(c.Managed); err != nil {
		return err
	}
	switch {
	case manage && !c.Managed:
		return m.manageMaster(c, cluster, in)
	case wire.Or(in.rotate, false):
		return m.rotateMaster(c, in)
	case !manage && c.Managed:
		return m.leaveMaster(c, in)
	}
	return m.password(c, in.password)
}

// leaveMaster has the owner choose the password that Howdah managed. What the database has
// until it takes that one stays known: it may be any of the secret's.
func (m *modification) leaveMaster(c *spec.Common, in masterAsked) error {
	c.Managed, c.PasswordSerial = false, max(c.PasswordSerial, taken(in.facts))
	r, err := m.s.secretOf(*c)
	if errors.Is(err, state.ErrNotFound) {
		return m.password(c, in.password)
	}
	if err != nil {
		return err
	}
	m.ops = append(m.ops, state.Swap(r.Key, r.Revision, r.Value.Taken(taken(in.facts), m.Call.Now).Leave(c.PasswordSerial+1)))
	return m.password(c, in.password)
}

// check refuses what does not fit together.
func (in masterAsked) check(managed bool) error {
	combination := func(text string) error { return wire.NewError(api.ErrInvalidParameterCombination, "%s", text) }
	manage := wire.Or(in.manage, managed)
	switch {
	case in.manage != nil && !manage && !managed:
		if in.password != nil {
			return nil // it is as it is, with another password
		}
		return combination("You cannot set ManageMasterUserPassword to false because the master user password is not currently managed by RDS.")
	case !manage && managed && in.password == nil:
		return combination("MasterUserPassword must be provided when ManageMasterUserPassword is set to false.")
	case manage && in.password != nil:
		return bothPasswords()
	case wire.Or(in.rotate, false) && !managed:
		return combination("You can't specify RotateMasterUserPassword because the master user password is not managed in AWS Secrets Manager.")
	case wire.Or(in.rotate, false) && !manage:
		return combination("You can't specify RotateMasterUserPassword when ManageMasterUserPassword is set to false.")
	case wire.Or(in.rotate, false) && !wire.Or(in.now, false):
		return combination("You must specify ApplyImmediately when you specify RotateMasterUserPassword.")
	}
	return nil
}

// manageMaster has Howdah manage a password that its owner chose.
func (m *modification) manageMaster(c *spec.Common, cluster bool, in masterAsked) error {
	sealer, err := m.s.secretSealer()
	if err != nil {
		return err
	}
	r, err := m.s.secretOf(*c)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	if err == nil && !r.Value.Left(taken(in.facts)) {
		// It managed the password before, and the database has not taken the owner's.
		c.Managed, c.PasswordSerial = true, max(c.PasswordSerial, taken(in.facts))
		next, password := r.Value.Taken(taken(in.facts), m.Call.Now).Rotate(c.PasswordSerial+1, "", m.Call.Now, sealer)
		m.ops = append(m.ops, state.Swap(r.Key, r.Revision, next))
		return m.password(c, &password)
	}
	made, password := secret.New(c.Scope, c.ResourceID, cluster, c.MasterUser, c.PasswordSerial+1, m.Call.Now, sealer)
	c.Managed = true
	m.ops = append(m.ops, state.Swap(state.Secret(c.ResourceID), r.Revision, made))
	return m.password(c, &password)
}

// rotateMaster gives a managed master user another password.
func (m *modification) rotateMaster(c *spec.Common, in masterAsked) error {
	r, err := m.s.secretOf(*c)
	if err != nil {
		return err
	}
	sealer, err := m.s.secretSealer()
	if err != nil {
		return err
	}
	// A database that says more than the record is not believed less: what it has already it
	// does not take.
	c.PasswordSerial = max(c.PasswordSerial, taken(in.facts))
	have := r.Value.Taken(taken(in.facts), m.Call.Now)
	if have.Pending != nil && !have.Overtaken(standing(*c, in.facts)) {
		return m.busy(*c) // the database may take that one at any moment
	}
	next, password := have.Rotate(c.PasswordSerial+1, in.token, m.Call.Now, sealer)
	if in.days > 0 {
		next.Days = in.days
	}
	m.rotated = next
	m.ops = append(m.ops, state.Swap(r.Key, r.Revision, next))
	return m.password(c, &password)
}

// busy is the error for a database that is taking a password.
func (m *modification) busy(c spec.Common) error {
	const text = "%s is taking the password of its last rotation: see the SecretStatus of its MasterUserSecret, and try again when it is active."
	if m.kind == event.Cluster {
		return wire.NewError(rds.ErrInvalidDBClusterState, text, c.Name)
	}
	return wire.NewError(rds.ErrInvalidDBInstanceState, text, c.Name)
}

// secretOf is the record of a managed password. One is always there: it is made with the
// record that says so.
func (s *Server) secretOf(c spec.Common) (state.Record[secret.Secret], error) {
	return state.Load[secret.Secret](s.Cache, state.Secret(c.ResourceID))
}

// taken is the serial of the verifier that a database has, as its primary says; 0: it has
// none that says so.
func taken(facts plan.Facts) (serial int64) {
	primary, ok := facts.Primary()
	if !ok {
		return 0
	}
	return facts.Reports[member.ID(facts.Want.ID, primary.Name)].OwnerSerial
}

func standing(c spec.Common, facts plan.Facts) secret.Standing {
	return secret.Standing{Verifier: c.PasswordSerial, Taken: taken(facts)}
}

// masterSecretOut shows whose password is managed; nil: its owner chose it.
func (l *sight) masterSecretOut(c spec.Common, facts plan.Facts) *rds.MasterUserSecret {
	if !c.Managed {
		return nil
	}
	r, err := l.s.secretOf(c)
	if err != nil {
		return &rds.MasterUserSecret{SecretStatus: wire.Some(secret.Impaired)} // it cannot be read
	}
	return &rds.MasterUserSecret{SecretArn: wire.Some(r.Value.ARN()), SecretStatus: wire.Some(r.Value.Status(standing(c, facts), l.Now()))}
}

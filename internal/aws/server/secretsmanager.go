package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/identity/secret"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// The part of Secrets Manager that managed master passwords need. It has no secrets but
// those, and nobody but RDS changes them.

const secretName = "secretsmanager"

// Errors of the service (API reference of Secrets Manager).
const (
	errNoSecret         = "ResourceNotFoundException"
	errSecretRequest    = "InvalidRequestException"
	errSecretParameter  = "InvalidParameterException"
	errSecretPagination = "InvalidNextTokenException"
)

// secretService is what package front needs to know of it.
func (s *Server) secretService() *front.Service {
	return &front.Service{
		Name: secretName, Target: secretName, Refused: noSecretAction,
		Actions: map[string]front.Action{
			"GetSecretValue":       onSecret(s, s.getSecretValue),
			"DescribeSecret":       onSecret(s, s.describeSecret),
			"ListSecretVersionIds": onSecret(s, s.listSecretVersionIDs),
			"RotateSecret":         onSecret(s, s.rotateSecret),
			"ListSecrets":          front.OnJSON(s.mayList, s.listSecrets),
		},
	}
}

// secretActions are those that the service has besides.
var secretActions = []string{
	"BatchGetSecretValue", "CancelRotateSecret", "CreateSecret", "DeleteResourcePolicy", "DeleteSecret", "GetRandomPassword", "GetResourcePolicy",
	"PutResourcePolicy", "PutSecretValue", "RemoveRegionsFromReplication", "ReplicateSecretToRegions", "RestoreSecret", "StopReplicationToReplica",
	"TagResource", "UntagResource", "UpdateSecret", "UpdateSecretVersionStage", "ValidateResourcePolicy",
}

func noSecretAction(action string) error {
	if slices.Contains(secretActions, action) {
		return wire.NewError(errSecretRequest, "You can't perform %s here: Howdah keeps only the master users' passwords that RDS manages, which nobody else changes.", action)
	}
	return wire.NewError("UnknownOperationException", "The action %s is not valid for this web service.", action)
}

// secretInput is what all actions on one secret have.
type secretInput struct {
	SecretID           *string `json:"SecretId"`
	VersionID          *string `json:"VersionId"`
	VersionStage       *string
	RotateImmediately  *bool
	RotationRules      *rotationRules
	RotationLambdaARN  *string
	ClientRequestToken *string
}

type rotationRules struct {
	AutomaticallyAfterDays *int64  `json:",omitempty"`
	ScheduleExpression     *string `json:",omitempty"`
	Duration               *string `json:",omitempty"`
}

// onSecret makes an action on one secret of a handler. The caller's policies are asked
// before anything is said of it.
func onSecret(s *Server, handler func(context.Context, front.Call, managedSecret, secretInput) (any, error)) front.Action {
	return front.OnJSON(nil, func(ctx context.Context, c front.Call, in *secretInput) (any, error) {
		if wire.Or(in.SecretID, "") == "" {
			return nil, wire.NewError(errSecretParameter, "You must provide a value for the SecretId parameter.")
		}
		c.Shows(map[string]string{"SecretId": *in.SecretID}) // which cuts what is too long
		var out any
		err := s.client.Retry(ctx, func() error {
			found, ok := s.findSecret(c.Scope, *in.SecretID)
			if err := s.mayUse(c, found, ok, *in.SecretID); err != nil {
				return err
			}
			if !ok {
				return wire.NewError(errNoSecret, "Secrets Manager can't find the specified secret.")
			}
			var err error
			out, err = handler(ctx, c, found, *in)
			return err
		})
		return out, err
	})
}

// managedSecret is a secret with its database.
type managedSecret struct {
	secret.Secret
	record state.Record[secret.Secret]
	common spec.Common
	facts  plan.Facts // see now
}

// managed is a secret as it was written; ok is false where nobody manages the database's
// password any more, and the database has its owner's.
func (l *sight) managed(r state.Record[*secret.Secret]) (m managedSecret, ok bool) {
	of := r.Value
	m = managedSecret{Secret: *of, record: state.Copy(r)}
	if of.Cluster {
		c, exists := l.Cluster[of.Database]
		m.common = c.Common
		return m, exists && (c.Managed || of.Until > 0)
	}
	i := l.Instance[of.Database]
	if i == nil {
		return m, false
	}
	m.common = i.Common
	return m, i.Managed || of.Until > 0
}

// now is a secret as it is now: what the database has taken since it was written counts.
func (m managedSecret) now(l *sight) managedSecret {
	if m.Cluster {
		m.facts = l.FactsOfCluster(l.Cluster[m.Database])
	} else {
		m.facts = l.FactsOf(*l.Instance[m.Database])
	}
	m.Secret = m.Taken(database.Taken(m.facts), l.Now().UTC())
	return m
}

// managedSecrets are those of a scope as they were written, by name.
func (l *sight) managedSecrets(scope spec.Scope) []managedSecret {
	var all []managedSecret
	for _, r := range state.ViewAll[secret.Secret](l.Cache, state.SecretRoot) {
		if r.Value.Scope != scope {
			continue
		}
		if m, ok := l.managed(r); ok {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b managedSecret) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// findSecret finds a secret by its name, its ARN, or an ARN without its last characters.
func (s *Server) findSecret(scope spec.Scope, id string) (managedSecret, bool) {
	name, isARN := strings.CutPrefix(id, secretARN(scope, ""))
	l := s.look(scope.Account)
	for _, r := range state.ViewAll[secret.Secret](s.Cache, state.SecretRoot) {
		of := r.Value
		if of.Scope != scope || name != of.Name && (!isARN || name != of.Name+"-"+of.Suffix) {
			continue
		}
		m, ok := l.managed(r)
		if !ok {
			return managedSecret{}, false
		}
		m = m.now(l)
		return m, !m.gone()
	}
	return managedSecret{}, false
}

// gone: the database has its owner's password, and the next chore removes the secret.
func (m managedSecret) gone() bool { return m.Left(database.Taken(m.facts)) }

// secretARN is the ARN of a secret with this name, without the characters that every secret
// has behind it.
func secretARN(scope spec.Scope, name string) string {
	return secret.Secret{Scope: scope, Name: name}.Prefix()
}

// owner is the ARN of the secret's database.
func (m managedSecret) owner() string {
	if m.Cluster {
		return m.common.ARN("cluster", m.common.Name)
	}
	return m.common.ARN("db", m.common.Name)
}

// tags are those that RDS gives the secret.
func (m managedSecret) tags() []secretTag {
	kind := "DBInstance"
	if m.Cluster {
		kind = "DBCluster"
	}
	return []secretTag{{"aws:secretsmanager:owningService", owningService}, {"aws:rds:primary" + kind + "Arn", m.owner()}}
}

type secretTag struct {
	Key, Value string
}

// mayUse asks the caller's policies about a secret, which there may not be.
func (s *Server) mayUse(c front.Call, m managedSecret, exists bool, id string) error {
	context := c.Context(nil)
	if !exists {
		if !strings.HasPrefix(id, "arn:") {
			id = secretARN(c.Scope, id)
		}
		return c.May(id, context, true)
	}
	for _, tag := range m.tags() {
		context["aws:ResourceTag/"+tag.Key] = []string{tag.Value}
		context["secretsmanager:ResourceTag/"+tag.Key] = []string{tag.Value}
	}
	return c.May(m.ARN(), context, true)
}

// stagesOf are the stages of each version, by id.
func (m managedSecret) stagesOf() map[string][]string {
	all := map[string][]string{}
	for _, v := range m.All() {
		all[v.ID] = []string{}
	}
	for stage, v := range m.Versions() {
		all[v.ID] = append(all[v.ID], stage)
	}
	return all
}

// epoch is a time as JSON services write it.
type epoch time.Time

// MarshalJSON writes seconds since 1970.
func (e epoch) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(time.Time(e).UnixMilli())/1000, 'f', 3, 64), nil
}

func (s *Server) getSecretValue(_ context.Context, _ front.Call, m managedSecret, in secretInput) (any, error) {
	stage, versions := wire.Or(in.VersionStage, ""), m.Versions()
	var found *secret.Version
	for name, v := range versions {
		if in.VersionID != nil && v.ID == *in.VersionID && (stage == "" || stage == name) || in.VersionID == nil && name == cmp.Or(stage, secret.Current) {
			found = &v
		}
	}
	for _, v := range m.All() {
		if found == nil && stage == "" && in.VersionID != nil && v.ID == *in.VersionID {
			found = &v // one that has no stage any more
		}
	}
	if found == nil {
		return nil, wire.NewError(errNoSecret, "Secrets Manager can't find the specified secret value for staging label: %s", cmp.Or(stage, wire.Or(in.VersionID, "")))
	}
	sealer, err := s.databases.Sealer()
	if err != nil {
		return nil, err
	}
	value, err := sealer.Value(m.Secret, *found)
	if err != nil {
		return nil, err
	}
	return struct {
		ARN, Name     string
		VersionID     string `json:"VersionId"`
		SecretString  string
		VersionStages []string
		CreatedDate   epoch
	}{m.ARN(), m.Name, found.ID, value, m.stagesOf()[found.ID], epoch(found.Created)}, nil
}

// secretOut is a secret without its value.
type secretOut struct {
	ARN, Name, Description            string
	RotationEnabled                   bool
	RotationRules                     rotationRules
	LastRotatedDate                   *epoch `json:",omitempty"`
	LastChangedDate, NextRotationDate epoch
	CreatedDate                       epoch
	Tags                              []secretTag
	OwningService                     string
	VersionIDs                        map[string][]string `json:"VersionIdsToStages,omitempty"`
	SecretVersions                    map[string][]string `json:"SecretVersionsToStages,omitempty"`
	PrimaryRegion                     string              `json:",omitempty"`
}

func (m managedSecret) out() secretOut {
	kind := "DB instance"
	if m.Cluster {
		kind = "DB cluster"
	}
	days := int64(m.Days)
	out := secretOut{
		ARN: m.ARN(), Name: m.Name, Description: "The secret associated with the primary RDS " + kind + ": " + m.owner(),
		RotationEnabled: true, RotationRules: rotationRules{AutomaticallyAfterDays: &days}, Tags: m.tags(), OwningService: owningService,
		CreatedDate: epoch(m.Created), LastChangedDate: epoch(m.Current.Created), NextRotationDate: epoch(m.Due()),
	}
	if !m.Rotated.IsZero() {
		at := epoch(m.Rotated)
		out.LastRotatedDate = &at
	}
	return out
}

func (s *Server) describeSecret(_ context.Context, _ front.Call, m managedSecret, _ secretInput) (any, error) {
	out := m.out()
	out.VersionIDs = m.stagesOf()
	return out, nil
}

func (s *Server) listSecretVersionIDs(_ context.Context, _ front.Call, m managedSecret, _ secretInput) (any, error) {
	type version struct {
		VersionID     string `json:"VersionId"`
		VersionStages []string
		CreatedDate   epoch
	}
	all := []version{}
	for id, stages := range m.stagesOf() {
		for _, v := range m.All() {
			if v.ID == id {
				all = append(all, version{id, stages, epoch(v.Created)})
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b version) int { return time.Time(b.CreatedDate).Compare(time.Time(a.CreatedDate)) })
	return struct {
		Versions  []version
		ARN, Name string
	}{all, m.ARN(), m.Name}, nil
}

// rotateSecret has the database take another password, or changes how often it does.
func (s *Server) rotateSecret(ctx context.Context, c front.Call, m managedSecret, in secretInput) (any, error) {
	days, err := in.rules()
	if err != nil {
		return nil, err
	}
	if m.Until > 0 {
		return nil, wire.NewError(errSecretRequest, "You can't rotate the secret: the master user of its database has a password of its owner.")
	}
	if in.ClientRequestToken != nil && !secret.GoodToken(*in.ClientRequestToken) {
		return nil, wire.NewError(errSecretParameter, "ClientRequestToken must be 32-64 characters long.")
	}
	if days == 0 {
		days = m.Days
	}
	if !wire.Or(in.RotateImmediately, true) {
		next := m.Secret
		next.Days = days
		if err := s.client.Commit(ctx, state.Swap(m.record.Key, m.record.Revision, next)); err != nil {
			return nil, err
		}
		return rotatedOut{m.ARN(), m.Name, ""}, nil
	}
	token := wire.Or(in.ClientRequestToken, "")
	if m.Made(token) {
		return rotatedOut{m.ARN(), m.Name, token}, nil // the same call again
	}
	if m.Pending != nil {
		return nil, wire.NewError(errSecretRequest, "A previous rotation isn't complete. That rotation will be reattempted.")
	}
	next, err := s.rotateManaged(ctx, c, m, days, token)
	if errors.Is(err, errNotUsable) {
		return nil, wire.NewError(errSecretRequest, "You can't rotate the secret now: its database is not available.")
	}
	if err != nil {
		return nil, err
	}
	return rotatedOut{m.ARN(), m.Name, next.Pending.ID}, nil
}

type rotatedOut struct {
	ARN, Name string
	VersionID string `json:"VersionId,omitempty"`
}

// rules are how often the password is to be changed, in days; 0: nothing is said.
func (in secretInput) rules() (int, error) {
	if in.RotationLambdaARN != nil {
		return 0, wire.NewError(errSecretParameter, "You can't specify RotationLambdaARN for a secret whose rotation is managed.")
	}
	r := in.RotationRules
	switch {
	case r == nil:
		return 0, nil
	case r.ScheduleExpression != nil || r.Duration != nil:
		return 0, wire.NewError(errSecretParameter, "Howdah takes AutomaticallyAfterDays alone: leave ScheduleExpression and Duration away.")
	case r.AutomaticallyAfterDays == nil || *r.AutomaticallyAfterDays < 1 || *r.AutomaticallyAfterDays > secret.MostDays:
		return 0, wire.NewError(errSecretParameter, "AutomaticallyAfterDays must be from 1 to %d.", secret.MostDays)
	}
	return int(*r.AutomaticallyAfterDays), nil
}

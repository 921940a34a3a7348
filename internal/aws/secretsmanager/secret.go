package secretsmanager

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/identity/secret"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// owningService is the service that owns these secrets.
const owningService = "rds"

// managed is a managed password as a secret.
type managed struct{ database.Managed }

// managedSecrets returns the secrets of a scope as they were written, by name.
func managedSecrets(l *look.Look, scope spec.Scope) []managed {
	var all []managed
	for _, r := range state.ViewAll[secret.Secret](l.Cache, state.SecretRoot) {
		if r.Value.Scope != scope {
			continue
		}
		if m, ok := database.ManagedOf(l, r); ok {
			all = append(all, managed{m})
		}
	}
	slices.SortFunc(all, func(a, b managed) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// findSecret finds a secret by its name, its ARN, or an ARN without its last characters.
func (s *service) findSecret(scope spec.Scope, id string) (managed, bool) {
	name, isARN := strings.CutPrefix(id, arnOf(scope, ""))
	l := s.looks.Of(scope.Account)
	for _, r := range state.ViewAll[secret.Secret](s.Cache, state.SecretRoot) {
		of := r.Value
		if of.Scope != scope || name != of.Name && (!isARN || name != of.Name+"-"+of.Suffix) {
			continue
		}
		found, ok := database.ManagedOf(l, r)
		if !ok {
			return managed{}, false
		}
		m := managed{found.Now(l)}
		return m, !m.Gone()
	}
	return managed{}, false
}

// arnOf returns the ARN of a secret with this name, without the characters that every secret's ARN
// has at its end.
func arnOf(scope spec.Scope, name string) string {
	return secret.Secret{Scope: scope, Name: name}.Prefix()
}

// owner returns the ARN of the secret's database.
func (m managed) owner() string {
	if m.Cluster {
		return m.Common.ARN("cluster", m.Common.Name)
	}
	return m.Common.ARN("db", m.Common.Name)
}

// tags returns the tags that RDS gives the secret.
func (m managed) tags() []tag {
	kind := "DBInstance"
	if m.Cluster {
		kind = "DBCluster"
	}
	return []tag{{"aws:secretsmanager:owningService", owningService}, {"aws:rds:primary" + kind + "Arn", m.owner()}}
}

type tag struct {
	Key, Value string
}

// stagesOf returns the stages of each version, by id.
func (m managed) stagesOf() map[string][]string {
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

// secretOut is a secret without its value.
type secretOut struct {
	ARN, Name, Description            string
	RotationEnabled                   bool
	RotationRules                     rotationRules
	LastRotatedDate                   *epoch `json:",omitempty"`
	LastChangedDate, NextRotationDate epoch
	CreatedDate                       epoch
	Tags                              []tag
	OwningService                     string
	VersionIDs                        map[string][]string `json:"VersionIdsToStages,omitempty"`
	SecretVersions                    map[string][]string `json:"SecretVersionsToStages,omitempty"`
	PrimaryRegion                     string              `json:",omitempty"`
}

func (m managed) out() secretOut {
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

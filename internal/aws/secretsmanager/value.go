package secretsmanager

import (
	"cmp"
	"context"
	"slices"
	"time"

	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/secret"
)

func (s *service) describeSecret(_ context.Context, _ front.Call, m managed, _ oneInput) (any, error) {
	out := m.out()
	out.VersionIDs = m.stagesOf()
	return out, nil
}

func (s *service) listSecretVersionIDs(_ context.Context, _ front.Call, m managed, _ oneInput) (any, error) {
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

func (s *service) getSecretValue(_ context.Context, _ front.Call, m managed, in oneInput) (any, error) {
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
	key, err := s.seal()
	if err != nil {
		return nil, err
	}
	sealer, err := secret.NewSealer(key)
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

package secretsmanager

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
)

// maxResults is how many secrets a page has at most, and the default.
const maxResults = 100

// filter is one condition on secrets. All conditions must hold, each by any of its values. A value
// that begins with an exclamation mark must not hold.
type filter struct {
	Key    string
	Values []string
}

// filterBy has the conditions by which secrets can be looked for.
var filterBy = map[string]func(m managed, value string) bool{
	"name":           func(m managed, v string) bool { return strings.HasPrefix(m.Name, v) },
	"description":    func(m managed, v string) bool { return holdsWord(m.out().Description, v) },
	"owning-service": func(_ managed, v string) bool { return strings.HasPrefix(owningService, v) },
	"primary-region": func(m managed, v string) bool { return strings.HasPrefix(m.Region, v) },
	"tag-key": func(m managed, v string) bool {
		return slices.ContainsFunc(m.tags(), func(t tag) bool { return strings.HasPrefix(t.Key, v) })
	},
	"tag-value": func(m managed, v string) bool {
		return slices.ContainsFunc(m.tags(), func(t tag) bool { return strings.HasPrefix(t.Value, v) })
	},
	"all": func(m managed, v string) bool {
		return strings.HasPrefix(m.Name, v) || holdsWord(m.out().Description, v)
	},
}

func holdsWord(text, word string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(word))
}

func (f filter) holds(m managed) bool {
	by := filterBy[f.Key]
	return slices.ContainsFunc(f.Values, func(v string) bool {
		v, not := strings.CutPrefix(v, "!")
		return by(m, v) != not
	})
}

// listInput is what a list of secrets is asked for by.
type listInput struct {
	MaxResults *int64
	NextToken  *string
	Filters    []filter
	SortOrder  *string
}

func (s *service) mayList(_ context.Context, c front.Call, _ *listInput) error {
	return c.May("*", c.Context(nil), true)
}

func (s *service) listSecrets(ctx context.Context, c front.Call, in *listInput) (any, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	most := wire.Or(in.MaxResults, maxResults)
	if most < 1 || most > maxResults {
		return nil, wire.NewError(errParameter, "MaxResults must be from 1 to %d.", maxResults)
	}
	for _, f := range in.Filters {
		if filterBy[f.Key] == nil || len(f.Values) == 0 {
			return nil, wire.NewError(errParameter, "There is no filter %q, or it has no values.", f.Key)
		}
	}
	after := ""
	if in.NextToken != nil {
		text, err := base64.RawURLEncoding.DecodeString(*in.NextToken)
		if err != nil || len(text) == 0 {
			return nil, wire.NewError(errPagination, "The NextToken is not valid.")
		}
		after = string(text)
	}
	return s.list(c, in.Filters, wire.Or(in.SortOrder, "asc") == "desc", after, int(most)), nil
}

type listOutput struct {
	SecretList []secretOut
	NextToken  string `json:",omitempty"`
}

func (s *service) list(c front.Call, filters []filter, descending bool, after string, most int) listOutput {
	l := s.looks.Of(c.Account)
	all := slices.DeleteFunc(managedSecrets(l, c.Scope), func(m managed) bool {
		return slices.ContainsFunc(filters, func(f filter) bool { return !f.holds(m) })
	})
	if descending {
		slices.Reverse(all)
	}
	page := listOutput{SecretList: []secretOut{}}
	for _, m := range all {
		if after != "" && (!descending && m.Name <= after || descending && m.Name >= after) {
			continue
		}
		if m = (managed{m.Now(l)}); m.Gone() {
			continue
		}
		if len(page.SecretList) == most {
			page.NextToken = base64.RawURLEncoding.EncodeToString([]byte(page.SecretList[most-1].Name))
			break
		}
		out := m.out()
		out.SecretVersions = m.stagesOf()
		page.SecretList = append(page.SecretList, out)
	}
	return page
}

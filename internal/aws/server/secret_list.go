package server

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
)

// owningService is whose secrets these are.
const owningService = "rds"

// mostSecrets is how many secrets a page has at most, and if nothing is said.
const mostSecrets = 100

// secretFilter is one condition on secrets: all conditions must hold, by any of their values.
// A value that begins with an exclamation mark must not hold.
type secretFilter struct {
	Key    string
	Values []string
}

// secretFilters are what secrets can be looked for by.
var secretFilters = map[string]func(m managedSecret, value string) bool{
	"name":           func(m managedSecret, v string) bool { return strings.HasPrefix(m.Name, v) },
	"description":    func(m managedSecret, v string) bool { return holdsWord(m.out().Description, v) },
	"owning-service": func(_ managedSecret, v string) bool { return strings.HasPrefix(owningService, v) },
	"primary-region": func(m managedSecret, v string) bool { return strings.HasPrefix(m.Region, v) },
	"tag-key": func(m managedSecret, v string) bool {
		return slices.ContainsFunc(m.tags(), func(t secretTag) bool { return strings.HasPrefix(t.Key, v) })
	},
	"tag-value": func(m managedSecret, v string) bool {
		return slices.ContainsFunc(m.tags(), func(t secretTag) bool { return strings.HasPrefix(t.Value, v) })
	},
	"all": func(m managedSecret, v string) bool {
		return strings.HasPrefix(m.Name, v) || holdsWord(m.out().Description, v)
	},
}

func holdsWord(text, word string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(word))
}

func (f secretFilter) holds(m managedSecret) bool {
	by := secretFilters[f.Key]
	return slices.ContainsFunc(f.Values, func(v string) bool {
		v, not := strings.CutPrefix(v, "!")
		return by(m, v) != not
	})
}

// secretListInput is what a list of secrets is asked for by.
type secretListInput struct {
	MaxResults *int64
	NextToken  *string
	Filters    []secretFilter
	SortOrder  *string
}

func (s *Server) mayList(_ context.Context, c front.Call, _ *secretListInput) error {
	return c.May("*", c.Context(nil), true)
}

func (s *Server) listSecrets(ctx context.Context, c front.Call, in *secretListInput) (any, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	most := wire.Or(in.MaxResults, mostSecrets)
	if most < 1 || most > mostSecrets {
		return nil, wire.NewError(errSecretParameter, "MaxResults must be from 1 to %d.", mostSecrets)
	}
	for _, f := range in.Filters {
		if secretFilters[f.Key] == nil || len(f.Values) == 0 {
			return nil, wire.NewError(errSecretParameter, "There is no filter %q, or it has no values.", f.Key)
		}
	}
	after := ""
	if in.NextToken != nil {
		text, err := base64.RawURLEncoding.DecodeString(*in.NextToken)
		if err != nil || len(text) == 0 {
			return nil, wire.NewError(errSecretPagination, "The NextToken is not valid.")
		}
		after = string(text)
	}
	return s.secretPage(c, in.Filters, wire.Or(in.SortOrder, "asc") == "desc", after, int(most)), nil
}

type secretPage struct {
	SecretList []secretOut
	NextToken  string `json:",omitempty"`
}

func (s *Server) secretPage(c front.Call, filters []secretFilter, descending bool, after string, most int) secretPage {
	l := s.look(c.Account)
	all := slices.DeleteFunc(l.managedSecrets(c.Scope), func(m managedSecret) bool {
		return slices.ContainsFunc(filters, func(f secretFilter) bool { return !f.holds(m) })
	})
	if descending {
		slices.Reverse(all)
	}
	page := secretPage{SecretList: []secretOut{}}
	for _, m := range all {
		if after != "" && (!descending && m.Name <= after || descending && m.Name >= after) {
			continue
		}
		if m = m.now(l); m.gone() {
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

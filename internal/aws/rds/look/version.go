package look

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Offer is a version of PostgreSQL that an engine can be made with.
type Offer struct {
	Engine  string
	Version string
	Major   int
	Newest  bool // the default of its engine
}

// Key sorts as a person would: 9 before 15, 15.9 before 15.18.
func (o Offer) Key() string {
	return fmt.Sprintf("%s/%04d/%04d", o.Engine, o.Major, minorOf(o.Version))
}

// Family is the name of the family of its parameter groups.
func (o Offer) Family() string { return o.Engine + strconv.Itoa(o.Major) }

// Is: a text such as "15" or "15.18", or none, asks for it.
func (o Offer) Is(asked *string) bool {
	return asked == nil || *asked == o.Version || *asked == strconv.Itoa(o.Major)
}

// Offers are all versions of both engines, or of the one that is asked for: what
// is really installed on the home's hosts.
func (s *Source) Offers(engine *string) ([]Offer, error) {
	engines := []string{spec.Aurora, spec.Postgres}
	if engine != nil && !slices.Contains(engines, *engine) {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Unrecognized engine name: %s. Here are %s.", *engine, strings.Join(engines, " and "))
	}
	installed := s.Installed()
	var all []Offer
	for _, name := range engines {
		if engine != nil && *engine != name {
			continue
		}
		majors := slices.Sorted(maps.Keys(installed))
		for i, m := range majors {
			all = append(all, Offer{name, installed[m], m, i == len(majors)-1})
		}
	}
	return all, nil
}

// ResolveVersion finds the installed version that a text such as "15" or "15.18"
// asks for; "" asks for the newest.
func (s *Source) ResolveVersion(engine, asked string) (full string, major int, err error) {
	installed := s.Installed()
	for m, text := range installed {
		if (asked == "" && m > major) || asked == text || asked == strconv.Itoa(m) {
			full, major = text, m
		}
	}
	if major == 0 && len(installed) == 0 {
		return "", 0, wire.NewError(api.ErrServiceUnavailable, "No host has joined yet: see `howdah status`, and try again.")
	}
	if major == 0 {
		return "", 0, wire.NewError(api.ErrInvalidParameterCombination, "Cannot find version %s for %s: see EngineVersion of DescribeDBEngineVersions", asked, engine)
	}
	return full, major, nil
}

// Installed are the newest versions that the home's hosts have, by major.
func (s *Source) Installed() map[int]string {
	installed := map[int]string{}
	for _, h := range state.LoadAll[member.Host](s.Cache, state.HostRoot) {
		for m, text := range h.Value.Majors {
			if installed[m] == "" || Newer(text, installed[m]) {
				installed[m] = text
			}
		}
	}
	return installed
}

// Newer compares versions of one major: "15.9" is older than "15.18".
func Newer(a, b string) bool { return minorOf(a) > minorOf(b) }

func minorOf(version string) int {
	_, text, _ := strings.Cut(version, ".")
	minor, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return minor
}

// Package param knows PostgreSQL's parameters as RDS's parameter groups present them. It says which
// parameters there are, what values they take, which belong to the platform, what RDS's formulas
// compute, and which version of a value is in force where. It does no I/O: the agent of a host that
// has a version of PostgreSQL reads that version's catalogue from it.
package param

import (
	"cmp"
	"slices"
	"strings"
)

// Parameter is one parameter of an installed PostgreSQL: a row of pg_settings.
type Parameter struct {
	Name    string   `json:"name"`
	Type    string   `json:"vartype"` // bool, integer, real, string or enum
	Unit    string   `json:"unit,omitempty"`
	Min     string   `json:"min_val,omitempty"`
	Max     string   `json:"max_val,omitempty"`
	Enum    []string `json:"enumvals,omitempty"`
	Context string   `json:"context"`
	Default string   `json:"boot_val,omitempty"`
	Text    string   `json:"short_desc,omitempty"`
}

// Catalogue is what one installed version of PostgreSQL has.
type Catalogue struct {
	Version    string      `json:"version"` // 15.18
	Parameters []Parameter `json:"parameters"`
	// Libraries lists what may be preloaded. PostgreSQL does not start with a library that is
	// missing.
	Libraries []string `json:"libraries,omitempty"`
	// Extensions lists the extensions that may be created.
	Extensions []string `json:"extensions,omitempty"`
}

// Kind is one of the two kinds of groups.
type Kind string

// The kinds.
const (
	Instance Kind = "instance"
	Cluster  Kind = "cluster"
)

// All returns the parameters that groups of a family show, sorted by name: PostgreSQL's and RDS's
// own.
func (c Catalogue) All(f Family) []Parameter {
	all := c.unsorted(f)
	slices.SortFunc(all, func(a, b Parameter) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return all
}

func (c Catalogue) unsorted(f Family) []Parameter {
	all := slices.Concat(c.Parameters, c.ofLibraries())
	for _, own := range rdsParameters {
		if own.aurora && f.Engine != auroraEngine {
			continue
		}
		all = append(all, own.make(c))
	}
	for i := range all {
		all[i] = narrowed(all[i])
	}
	return all
}

// Find finds a parameter by its name in any case.
func (c Catalogue) Find(f Family, name string) (Parameter, bool) {
	for _, p := range c.unsorted(f) {
		if strings.EqualFold(p.Name, name) {
			return p, true
		}
	}
	return Parameter{}, false
}

// Static reports whether the parameter takes effect only when PostgreSQL starts.
func (p Parameter) Static() bool { return p.Context == "postmaster" || p.Context == "internal" }

// ApplyType returns RDS's word for when the parameter takes effect.
func (p Parameter) ApplyType() string {
	if p.Static() {
		return "static"
	}
	return "dynamic"
}

// DataType returns RDS's word for the type.
func (p Parameter) DataType() string {
	switch p.Type {
	case "bool":
		return "boolean"
	case "integer":
		return "integer"
	case "real":
		return "float"
	}
	if isList(p.Name) {
		return "list"
	}
	return "string"
}

// AllowedValues returns RDS's text for the values that the parameter takes. It is "" where a short
// text cannot say that.
func (p Parameter) AllowedValues() string {
	switch {
	case p.Type == "bool":
		return "0,1"
	case len(p.Enum) > 0:
		return strings.Join(p.Enum, ",")
	case p.Min != "" && p.Max != "":
		return p.Min + "-" + p.Max
	}
	return ""
}

// isList reports whether a value of the parameter is a list of names with commas between them.
func isList(name string) bool {
	return slices.Contains([]string{
		"shared_preload_libraries", "session_preload_libraries", "search_path", "temp_tablespaces", "DateStyle", "rds.extensions", "rds.allowed_extensions",
	}, name)
}

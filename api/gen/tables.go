package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const apiImport = "howdah/api"

// service writes the table of actions and the Service that holds all tables.
func (r *renderer) service() {
	s := r.file("service")
	s.use(apiImport)
	meta := r.m.Metadata
	s.doc = fmt.Sprintf("// Package %s holds the shapes, actions, error codes and limits of the service %s.\n", r.pkg, r.pkg)
	s.printf("// Service is the contract of %s, version %s.\n", r.pkg, meta.APIVersion)
	s.printf("var Service = api.Service{\n")
	s.printf("Name: %q,\nVersion: %q,\nXMLNS: %q,\n", cmp.Or(meta.SigningName, meta.EndpointPrefix), meta.APIVersion, r.namespace())
	if r.m.ec2() {
		s.printf("Protocol: api.EC2,\n")
	}
	s.printf("Actions: actions,\nErrors: statuses,\nChecks: checks,\n}\n\n")
	s.printf("var actions = []api.Action{\n")
	for _, name := range slices.Sorted(maps.Keys(r.m.Operations)) {
		r.action(s, r.m.Operations[name])
	}
	s.printf("}\n")
}

// namespace is that of answers; EC2 writes a slash behind the one of its model.
func (r *renderer) namespace() string {
	if r.m.ec2() {
		return r.m.Metadata.XMLNamespace + "/"
	}
	return r.m.Metadata.XMLNamespace
}

func (r *renderer) action(s *source, op operation) {
	s.printf("{Name: %q, Input: api.New[%s]", op.Name, op.Input.Shape)
	if op.Output != nil {
		s.printf(", Output: api.New[%s]", op.Output.Shape)
		if op.Output.ResultWrapper != "" {
			s.printf(", Wrapper: %q", op.Output.ResultWrapper)
		}
	}
	if len(op.Errors) > 0 {
		s.printf(", Errors: []string{")
		for i, e := range op.Errors {
			if i > 0 {
				s.printf(", ")
			}
			s.printf("%s", r.errorNames[e.Shape])
		}
		s.printf("}")
	}
	s.printf("},\n")
}

// nameErrors names the constant of every error that an action refers to: Err
// and the shape's name without the ending that says that it is an error.
func (r *renderer) nameErrors() error {
	r.errorNames = map[string]string{}
	owner := map[string]string{}
	for _, op := range r.m.Operations {
		for _, ref := range op.Errors {
			if r.m.Shapes[ref.Shape].Error.Code == "" {
				return fmt.Errorf("error shape %s has no code", ref.Shape)
			}
			base := strings.TrimSuffix(strings.TrimSuffix(ref.Shape, "Fault"), "Exception")
			if other, taken := owner[base]; taken && other != ref.Shape {
				return fmt.Errorf("error shapes %s and %s have one name", other, ref.Shape)
			}
			owner[base] = ref.Shape
			r.errorNames[ref.Shape] = "Err" + base
		}
	}
	return nil
}

// errors writes the constants of the error codes and the table of their statuses.
// The model of EC2 has none: that package's own file holds them.
func (r *renderer) errors() {
	if r.m.ec2() {
		return
	}
	s := r.file("errors")
	names := slices.SortedFunc(maps.Keys(r.errorNames), func(a, b string) int {
		return strings.Compare(r.errorNames[a], r.errorNames[b])
	})
	if len(names) > 0 {
		s.printf("// The codes of the errors that the actions answer.\nconst (\n")
		for _, name := range names {
			s.printf("%s = %q\n", r.errorNames[name], r.m.Shapes[name].Error.Code)
		}
		s.printf(")\n\n")
	}
	s.printf("var statuses = map[string]int{\n")
	for _, name := range names {
		s.printf("%s: %d,\n", r.errorNames[name], r.m.Shapes[name].Error.HTTPStatusCode)
	}
	s.printf("}\n")
}

// checkTable writes the limits that the members' tags name.
func (r *renderer) checkTable() error {
	s := r.file("checks")
	s.use(apiImport)
	s.printf("var checks = map[string]api.Check{\n")
	for _, name := range slices.Sorted(maps.Keys(r.checks)) {
		sh := r.m.Shapes[name]
		fields := []string{}
		if sh.Enum != nil {
			fields = append(fields, fmt.Sprintf("Enum: %#v", sh.Enum))
		}
		for _, limit := range []struct {
			name  string
			value *json.Number
		}{{"Min", sh.Min}, {"Max", sh.Max}} {
			if limit.value == nil {
				continue
			}
			n, err := limit.value.Int64()
			if err != nil {
				return fmt.Errorf("limit of %s: %w", name, err)
			}
			fields = append(fields, fmt.Sprintf("%s: api.Bound(%d)", limit.name, n))
		}
		pattern, err := patternFields(sh.Pattern)
		if err != nil {
			return fmt.Errorf("pattern of %s: %w", name, err)
		}
		s.printf("%q: {%s},\n", name, strings.Join(append(fields, pattern...), ", "))
	}
	s.printf("}\n")
	return nil
}

// lookAhead matches a negative look-ahead for punctuation anywhere in the rest.
var lookAhead = regexp.MustCompile(`\(\?!\.\*((?:\\?[-.])+)\)`)

// codePoint matches Java's way to write a character by its number.
var codePoint = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)

// patternFields returns the fields of api.Check that say what pattern says. The
// models' look-aheads stand right behind the first letters of a name, where
// "nowhere in the rest" and "nowhere" mean the same.
func patternFields(pattern string) ([]string, error) {
	if pattern == "" {
		return nil, nil
	}
	var without []string
	for _, found := range lookAhead.FindAllStringSubmatch(pattern, -1) {
		without = append(without, strings.ReplaceAll(found[1], `\`, ""))
	}
	slices.Sort(without)
	without = slices.Compact(without)
	pattern = lookAhead.ReplaceAllString(pattern, "")
	pattern = codePoint.ReplaceAllString(pattern, `\x{$1}`)
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err
	}
	fields := []string{fmt.Sprintf("Pattern: %s", quote(pattern))}
	if without != nil {
		fields = append(fields, fmt.Sprintf("Without: %#v", without))
	}
	return fields, nil
}

func quote(pattern string) string {
	if strings.Contains(pattern, "`") {
		return fmt.Sprintf("%q", pattern)
	}
	return "`" + pattern + "`"
}

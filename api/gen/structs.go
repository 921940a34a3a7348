package main

import (
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ownFile lists the verbs whose inputs have a file of their own.
var ownFile = []string{"Create", "Delete", "Describe", "Modify", "Restore"}

var firstWord = regexp.MustCompile(`^[A-Z][a-z]+`)

// group assigns every structure that an input or output can reach to a file,
// sorted by name. The rule looks at one name at a time, so that a new shape
// moves no other.
func (r *renderer) group() (map[string][]string, error) {
	files := map[string]string{}
	var queue []string
	for _, name := range slices.Sorted(maps.Keys(r.m.Operations)) {
		op := r.m.Operations[name]
		verb := firstWord.FindString(name)
		if !slices.Contains(ownFile, verb) {
			verb = "other"
		}
		if op.Output != nil {
			if op.Output.ResultWrapper == "" && !r.m.ec2() {
				return nil, fmt.Errorf("action %s has an output without a wrapper", name)
			}
			queue = append(queue, op.Output.Shape)
			files[op.Output.Shape] = "output_" + describeOrOther(verb)
		}
		if op.Input == nil {
			return nil, fmt.Errorf("action %s has no input shape", name)
		}
		queue = append(queue, op.Input.Shape)
		files[op.Input.Shape] = "input_" + strings.ToLower(verb)
	}
	for seen := map[string]bool{}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if seen[name] {
			continue
		}
		seen[name] = true
		sh := r.m.Shapes[name]
		if sh.Type == "structure" || r.entries(sh) {
			files[name] = cmp.Or(files[name], shapeFile(name))
		}
		queue = append(queue, sh.refs()...)
	}
	groups := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		groups[files[name]] = append(groups[files[name]], name)
	}
	return groups, nil
}

func describeOrOther(verb string) string {
	if verb == "Describe" {
		return "describe"
	}
	return "other"
}

func shapeFile(name string) string {
	switch {
	case strings.HasPrefix(name, "DBCluster"):
		return "shape_dbcluster"
	case strings.HasPrefix(name, "DB"):
		return "shape_db"
	case name < "N":
		return "shape_a_m"
	}
	return "shape_n_z"
}

// refs returns the names of the shapes that sh refers to.
func (sh shape) refs() []string {
	var names []string
	for _, m := range sh.Members {
		names = append(names, m.Shape)
	}
	for _, ref := range []*shapeRef{sh.Member, sh.Key, sh.Value} {
		if ref != nil {
			names = append(names, ref.Shape)
		}
	}
	return names
}

func (r *renderer) structure(s *source, name string) error {
	if !token.IsExported(name) {
		return fmt.Errorf("shape %s: not a Go name", name)
	}
	sh := r.m.Shapes[name]
	if len(sh.Members) == 0 && sh.Type == "structure" {
		s.printf("type %s struct{}\n\n", name)
		return nil
	}
	s.printf("type %s struct {\n", name)
	for _, m := range r.entryMembers(sh) {
		typ, err := r.goType(m.shapeRef)
		if err != nil {
			return fmt.Errorf("member %s of %s: %w", m.Name, name, err)
		}
		if strings.Contains(typ, "time.") {
			s.use("time")
		}
		required := sh.Type == "map" || slices.Contains(sh.Required, m.Name)
		s.printf("%s %s `wire:%q`\n", goName(m.Name), typ, r.tag(m, required))
	}
	s.printf("}\n\n")
	return nil
}

func goName(member string) string { return strings.ToUpper(member[:1]) + member[1:] }

// goType returns the field type of a member. Shapes that the query protocol of
// these services does not use are refused rather than guessed.
func (r *renderer) goType(ref shapeRef) (string, error) {
	sh, ok := r.m.Shapes[ref.Shape]
	if !ok {
		return "", fmt.Errorf("unknown shape %s", ref.Shape)
	}
	if ref.Flattened || ref.XMLAttribute || sh.Flattened {
		return "", fmt.Errorf("shape %s: flattened lists and attributes are not supported", ref.Shape)
	}
	switch sh.Type {
	case "structure":
		return "*" + ref.Shape, nil
	case "list":
		return r.goList(sh)
	case "map":
		if r.entries(sh) {
			return "[]" + ref.Shape, nil
		}
		return r.goMap(sh)
	}
	scalar, ok := scalars[sh.Type]
	if !ok {
		return "", fmt.Errorf("shape %s: type %s is not supported", ref.Shape, sh.Type)
	}
	return "*" + scalar, nil
}

// scalars are the types of single values; a blob is its text in base64, as on the
// wire.
var scalars = map[string]string{
	"string": "string", "blob": "string", "integer": "int32", "long": "int64",
	"double": "float64", "boolean": "bool", "timestamp": "time.Time",
}

// entries reports whether a map has structures as its values. On the wire it is a
// list of entries, each with a key and a value, and that is what it becomes here.
func (r *renderer) entries(sh shape) bool {
	return sh.Type == "map" && r.m.Shapes[sh.Value.Shape].Type == "structure"
}

// entryMembers are the members of a structure, or of an entry of a map.
func (r *renderer) entryMembers(sh shape) members {
	if !r.entries(sh) {
		return sh.Members
	}
	key, value := *sh.Key, *sh.Value
	return members{
		{Name: goName(cmp.Or(key.LocationName, "key")), shapeRef: key},
		{Name: goName(cmp.Or(value.LocationName, "value")), shapeRef: value},
	}
}

func (r *renderer) goMap(sh shape) (string, error) {
	if r.m.Shapes[sh.Key.Shape].Type != "string" || r.m.Shapes[sh.Value.Shape].Type != "string" {
		return "", fmt.Errorf("map of %s to %s is not supported", sh.Key.Shape, sh.Value.Shape)
	}
	return "map[string]string", nil
}

func (r *renderer) goList(sh shape) (string, error) {
	element := r.m.Shapes[sh.Member.Shape]
	switch element.Type {
	case "structure":
		return "[]" + sh.Member.Shape, nil
	case "string":
		return "[]string", nil
	}
	return "", fmt.Errorf("list of %s is not supported", element.Type)
}

// tag returns the member's wire facts in the form that api.MemberOf reads.
func (r *renderer) tag(m member, required bool) string {
	sh := r.m.Shapes[m.Shape]
	parts := []string{cmp.Or(m.LocationName, m.Name)}
	if param := r.param(m); param != parts[0] {
		parts = append(parts, "param="+param)
	}
	if r.m.ec2() && sh.Type == "list" {
		parts = append(parts, "flat")
	}
	if r.entries(sh) {
		parts = append(parts, "list=entry")
	}
	if sh.Type == "list" {
		parts = append(parts, "list="+cmp.Or(sh.Member.LocationName, "member"))
		if r.limited(sh.Member.Shape) {
			parts = append(parts, "each="+sh.Member.Shape)
		}
	}
	if required {
		parts = append(parts, "required")
	}
	if sh.Sensitive {
		parts = append(parts, "sensitive")
	}
	if r.limited(m.Shape) {
		parts = append(parts, "check="+m.Shape)
	}
	return strings.Join(parts, ",")
}

// param is the name of a member in a request. In EC2's protocol it is that of the
// answer with a capital letter, unless the model gives it one of its own.
func (r *renderer) param(m member) string {
	name := cmp.Or(m.LocationName, m.Name)
	if !r.m.ec2() {
		return name
	}
	return cmp.Or(m.QueryName, goName(name))
}

// limited reports whether a shape's values have limits, and if so remembers it
// for the table of checks.
func (r *renderer) limited(name string) bool {
	sh := r.m.Shapes[name]
	if sh.Enum == nil && sh.Min == nil && sh.Max == nil && sh.Pattern == "" {
		return false
	}
	r.checks[name] = true
	return true
}

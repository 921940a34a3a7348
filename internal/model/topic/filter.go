package topic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// Limits of SNS for filter policies.
const (
	maxPolicyBytes  = 256 << 10
	maxPolicyKeys   = 5
	maxCombinations = 150
	maxNumber       = 1e9
)

// Filter is a parsed filter policy. All its keys must match, each by one of its conditions. If
// there are alternatives, one of them must match, too.
type Filter struct {
	keys []key
	// or holds the alternatives: $or in the policy.
	or []Filter
}

// key is what the value of one key in a message must be: a value that passes one of the tests, or
// an object that passes a filter.
type key struct {
	name  string
	tests []test
	inner *Filter
}

// test is one condition on a value. absent passes if the key is missing, present if it is not.
type test struct {
	absent, present bool
	take            func(v any) bool
}

// parser parses a policy and counts what SNS limits.
type parser struct {
	nested bool // keys may hold objects: the policy is for bodies
	leaves int
	combos int
}

// ParseFilter parses a filter policy. nested allows keys inside keys, which policies for bodies may
// have. It refuses what SNS would refuse.
func ParseFilter(text string, nested bool) (Filter, error) {
	if len(text) > maxPolicyBytes {
		return Filter{}, fmt.Errorf("the policy is larger than %d bytes", maxPolicyBytes)
	}
	value, err := decode(text)
	if err != nil {
		return Filter{}, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return Filter{}, errors.New("the policy must be a JSON object")
	}
	p := &parser{nested: nested, combos: 1}
	f, err := p.filter(object, 1)
	switch {
	case err != nil:
		return Filter{}, err
	case p.leaves > maxPolicyKeys:
		return Filter{}, fmt.Errorf("a filter policy can have at most %d keys, not %d", maxPolicyKeys, p.leaves)
	case p.combos > maxCombinations:
		return Filter{}, fmt.Errorf("a filter policy can have at most %d combinations of values", maxCombinations)
	}
	return f, nil
}

// decode decodes one JSON value. Numbers stay as they are written.
func decode(text string) (any, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("failed to parse JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("failed to parse JSON: there is text behind its end")
	}
	return value, nil
}

func (p *parser) filter(object map[string]any, depth int) (Filter, error) {
	var f Filter
	if depth > 16 {
		return f, errors.New("the policy is nested too deep")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if alternatives, ok := orOf(name, object[name]); ok {
			for _, a := range alternatives {
				one, err := p.filter(a, depth+1)
				if err != nil {
					return f, err
				}
				f.or = append(f.or, one)
			}
			continue
		}
		k, err := p.key(name, object[name], depth)
		if err != nil {
			return f, err
		}
		f.keys = append(f.keys, k)
	}
	return f, nil
}

// orOf returns the alternatives in the value of a $or. They are two objects or more; with any other
// value, $or is a name like any other.
func orOf(name string, value any) ([]map[string]any, bool) {
	list, ok := value.([]any)
	if name != "$or" || !ok || len(list) < 2 {
		return nil, false
	}
	var all []map[string]any
	for _, v := range list {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		all = append(all, object)
	}
	return all, true
}

func (p *parser) key(name string, value any, depth int) (key, error) {
	switch v := value.(type) {
	case []any:
		p.leaves++
		p.combos = min(p.combos*max(len(v), 1)*p.depthFactor(depth), maxCombinations+1)
		if len(v) == 0 {
			return key{}, fmt.Errorf("%q: the list of conditions must not be empty", name)
		}
		k := key{name: name}
		for _, condition := range v {
			t, err := parseTest(condition)
			if err != nil {
				return key{}, fmt.Errorf("%q: %w", name, err)
			}
			k.tests = append(k.tests, t)
		}
		return k, nil
	case map[string]any:
		if !p.nested {
			return key{}, fmt.Errorf("%q: the policy can have no nested keys with the scope %s", name, ScopeAttributes)
		}
		if len(v) == 0 {
			return key{}, fmt.Errorf("%q: the object must not be empty", name)
		}
		inner, err := p.filter(v, depth+1)
		return key{name: name, inner: &inner}, err
	}
	return key{}, fmt.Errorf("%q: the conditions must be in a list", name)
}

// depthFactor returns how often SNS counts each value of a key at a depth. In a nested policy it is
// the depth.
func (p *parser) depthFactor(depth int) int {
	if !p.nested {
		return 1
	}
	return depth
}

func parseTest(condition any) (test, error) {
	switch c := condition.(type) {
	case string, json.Number, bool, nil:
		if err := checkNumbers(c); err != nil {
			return test{}, err
		}
		return test{take: func(v any) bool { return same(v, c) }}, nil
	case map[string]any:
		if len(c) != 1 {
			return test{}, errors.New("a condition must have one operator")
		}
		for name, operand := range c {
			return parseOperator(name, operand)
		}
	}
	return test{}, errors.New("a condition must be a string, a number, true, false, null or an operator")
}

func parseOperator(name string, operand any) (test, error) {
	text, isText := operand.(string)
	if slices.Contains([]string{"prefix", "suffix", "equals-ignore-case", "cidr"}, name) && !isText {
		return test{}, fmt.Errorf("the operand of %s must be a string", name)
	}
	switch name {
	case "exists":
		there, ok := operand.(bool)
		if !ok {
			return test{}, errors.New("the operand of exists must be true or false")
		}
		return test{present: there, absent: !there}, nil
	case "prefix", "suffix", "equals-ignore-case":
		return test{take: textTest(name, text)}, nil
	case "cidr":
		return parseCIDR(text)
	case "numeric":
		return parseNumeric(operand)
	case "anything-but":
		return parseAnythingBut(operand)
	}
	return test{}, fmt.Errorf("unrecognized match type %s", name)
}

func textTest(operator, operand string) func(any) bool {
	return func(v any) bool {
		s, ok := v.(string)
		if !ok {
			return false
		}
		switch operator {
		case "prefix":
			return strings.HasPrefix(s, operand)
		case "suffix":
			return strings.HasSuffix(s, operand)
		default:
			return strings.EqualFold(s, operand)
		}
	}
}

func parseCIDR(text string) (test, error) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return test{}, fmt.Errorf("%q is no network", text)
		}
		network = netip.PrefixFrom(address, address.BitLen())
	}
	return test{take: func(v any) bool {
		s, ok := v.(string)
		if !ok {
			return false
		}
		address, err := netip.ParseAddr(s)
		return err == nil && network.Contains(address)
	}}, nil
}

// parseAnythingBut parses what a value must not be: one or several values, or one or several
// prefixes or suffixes.
func parseAnythingBut(operand any) (test, error) {
	var refused []func(any) bool
	add := func(all []any, take func(any) (func(any) bool, error)) error {
		for _, one := range all {
			t, err := take(one)
			if err != nil {
				return err
			}
			refused = append(refused, t)
		}
		return nil
	}
	var err error
	switch o := operand.(type) {
	case map[string]any:
		if len(o) != 1 {
			return test{}, errors.New("anything-but must have one operator")
		}
		for name, inner := range o {
			if !slices.Contains([]string{"prefix", "suffix", "equals-ignore-case"}, name) {
				return test{}, fmt.Errorf("anything-but cannot have %s", name)
			}
			err = add(listed(inner), func(v any) (func(any) bool, error) {
				s, ok := v.(string)
				if !ok || s == "" && name != "equals-ignore-case" {
					return nil, fmt.Errorf("the operand of %s must be a string that is not empty", name)
				}
				return textTest(name, s), nil
			})
		}
	default:
		err = add(listed(operand), func(v any) (func(any) bool, error) {
			switch v.(type) {
			case string, json.Number:
				return func(got any) bool { return same(got, v) }, checkNumbers(v)
			}
			return nil, errors.New("the operand of anything-but must be a string or a number, or a list of them")
		})
	}
	if err == nil && len(refused) == 0 {
		err = errors.New("the list of anything-but must not be empty")
	}
	return test{take: func(v any) bool {
		return !slices.ContainsFunc(refused, func(is func(any) bool) bool { return is(v) })
	}}, err
}

func listed(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// parseNumeric parses one comparison, or a lower and an upper bound.
func parseNumeric(operand any) (test, error) {
	list, ok := operand.([]any)
	if !ok || len(list) != 2 && len(list) != 4 {
		return test{}, errors.New("the operand of numeric must be a list of a comparison and a number, or of two of each")
	}
	var bounds []func(float64) bool
	var operators []string
	var numbers []float64
	for i := 0; i < len(list); i += 2 {
		operator, isText := list[i].(string)
		number, err := numberOf(list[i+1])
		if err != nil {
			return test{}, err
		}
		compare, known := comparisons[operator]
		if !isText || !known {
			return test{}, fmt.Errorf("unrecognized numeric comparison %v", list[i])
		}
		operators, numbers = append(operators, operator), append(numbers, number)
		bounds = append(bounds, func(x float64) bool { return compare(x, number) })
	}
	if len(operators) == 2 && (operators[0][0] != '>' || operators[1][0] != '<' || numbers[0] >= numbers[1]) {
		return test{}, errors.New("a numeric range must have > or >= with the lower number first, and then < or <= with a higher one")
	}
	return test{take: func(v any) bool {
		n, ok := v.(json.Number)
		if !ok {
			return false
		}
		x, err := n.Float64()
		return err == nil && !slices.ContainsFunc(bounds, func(holds func(float64) bool) bool { return !holds(x) })
	}}, nil
}

var comparisons = map[string]func(a, b float64) bool{
	"=":  func(a, b float64) bool { return a == b },
	"<":  func(a, b float64) bool { return a < b },
	"<=": func(a, b float64) bool { return a <= b },
	">":  func(a, b float64) bool { return a > b },
	">=": func(a, b float64) bool { return a >= b },
}

func numberOf(v any) (float64, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("%v is no number", v)
	}
	x, err := n.Float64()
	if err != nil || math.Abs(x) > maxNumber {
		return 0, fmt.Errorf("the number %v is not between -10^9 and 10^9", v)
	}
	return x, nil
}

func checkNumbers(v any) error {
	if _, ok := v.(json.Number); !ok {
		return nil
	}
	_, err := numberOf(v)
	return err
}

// same reports whether a value of a message equals one of a policy. Numbers are equal if they have
// the same size, however they are written.
func same(a, b any) bool {
	x, isNumber := a.(json.Number)
	y, both := b.(json.Number)
	if !isNumber || !both {
		return a == b
	}
	n, err := x.Float64()
	m, other := y.Float64()
	return err == nil && other == nil && n == m
}

package param

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Machine is what formulas may ask of an instance. Sizes are in bytes.
type Machine struct {
	Memory  int64 // DBInstanceClassMemory
	Storage int64 // AllocatedStorage
	CPUs    int   // DBInstanceVCPU
	Port    int   // EndPointPort
	Replica bool  // TrueIfReplica
}

var errFormula = errors.New("not a valid formula")

// IsFormula reports whether a value has to be computed for each instance.
func IsFormula(value string) bool {
	if strings.ContainsAny(value, "{}") {
		return true
	}
	name, _, call := strings.Cut(value, "(")
	_, known := functions[strings.ToUpper(strings.TrimSpace(name))]
	return call && known
}

// Evaluate computes a formula of RDS: GREATEST, LEAST, SUM and log of numbers and of variables in
// braces, with * and /. As on RDS, each quotient and the result lose their decimals.
func Evaluate(formula string, m Machine) (int64, error) {
	if len(formula) > maxFormula {
		return 0, fmt.Errorf("%w: longer than %d characters", errFormula, maxFormula)
	}
	p := &parser{rest: formula, machine: m}
	v := p.expression(0)
	p.space()
	if p.err == nil && p.rest != "" {
		p.fail("unexpected %q", p.rest)
	}
	if p.err == nil && (math.IsNaN(v) || math.Abs(v) > 1<<62) {
		p.fail("the result is out of range")
	}
	if p.err != nil {
		return 0, p.err
	}
	return int64(v), nil
}

const (
	maxFormula = 1024
	maxNesting = 16
)

// functions holds the functions by upper-case name, with the least and the largest number of
// arguments.
var functions = map[string]struct {
	least, most int
	apply       func([]float64) float64
}{
	"GREATEST": {2, maxArguments, func(v []float64) float64 { return fold(v, math.Max) }},
	"LEAST":    {2, maxArguments, func(v []float64) float64 { return fold(v, math.Min) }},
	"SUM":      {2, maxArguments, func(v []float64) float64 { return fold(v, func(a, b float64) float64 { return a + b }) }},
	// The base is 2, as the RDS user guide says.
	"LOG": {1, 1, func(v []float64) float64 { return math.Log2(v[0]) }},
}

const maxArguments = 16

func fold(v []float64, f func(a, b float64) float64) float64 {
	result := v[0]
	for _, x := range v[1:] {
		result = f(result, x)
	}
	return result
}

// parser computes a formula while it reads it. After an error it stops.
type parser struct {
	rest    string
	machine Machine
	braces  int
	err     error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s", errFormula, fmt.Sprintf(format, args...))
	}
	p.rest = ""
}

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " ") }

// take reads the character c if it comes next, and reports whether it did.
func (p *parser) take(c byte) bool {
	p.space()
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *parser) expression(depth int) float64 {
	v := p.operand(depth)
	for p.err == nil {
		switch {
		case p.take('*'):
			v *= p.operand(depth)
		case p.take('/'):
			d := p.operand(depth)
			if d == 0 {
				p.fail("division by zero")
				return 0
			}
			v = math.Trunc(v / d)
		default:
			return v
		}
	}
	return 0
}

func (p *parser) operand(depth int) float64 {
	if depth > maxNesting {
		p.fail("more than %d levels", maxNesting)
		return 0
	}
	switch {
	case p.take('{'):
		p.braces++
		v := p.expression(depth + 1)
		p.braces--
		p.close('}')
		return v
	case p.take('('):
		v := p.expression(depth + 1)
		p.close(')')
		return v
	}
	if p.rest != "" && (isDigit(p.rest[0]) || p.rest[0] == '-') {
		return p.number()
	}
	return p.name(depth)
}

func (p *parser) close(c byte) {
	if p.err == nil && !p.take(c) {
		p.fail("%q is missing", string(c))
	}
}

func (p *parser) number() float64 {
	end := 1
	for end < len(p.rest) && (isDigit(p.rest[end]) || p.rest[end] == '.') {
		end++
	}
	v, err := strconv.ParseFloat(p.rest[:end], 64)
	if err != nil {
		p.fail("%q is no number", p.rest[:end])
		return 0
	}
	p.rest = p.rest[end:]
	return v
}

// name reads a variable or a call.
func (p *parser) name(depth int) float64 {
	end := 0
	for end < len(p.rest) && isLetter(p.rest[end]) {
		end++
	}
	name := p.rest[:end]
	if name == "" {
		p.fail("a number, a variable or a function is missing")
		return 0
	}
	p.rest = p.rest[end:]
	if f, ok := functions[strings.ToUpper(name)]; ok {
		arguments := p.arguments(depth)
		if p.err == nil && (len(arguments) < f.least || len(arguments) > f.most) {
			p.fail("%s with %d arguments", name, len(arguments))
		}
		if p.err != nil {
			return 0
		}
		return f.apply(arguments)
	}
	v, ok := p.variable(name)
	switch {
	case !ok:
		p.fail("unknown name %q", name)
	case p.braces == 0:
		p.fail("the variable %s must be in braces", name)
	}
	return v
}

func (p *parser) arguments(depth int) []float64 {
	if !p.take('(') {
		p.fail("%q is missing", "(")
		return nil
	}
	var all []float64
	for p.err == nil {
		all = append(all, p.expression(depth+1))
		if !p.take(',') {
			p.close(')')
			break
		}
	}
	return all
}

func (p *parser) variable(name string) (float64, bool) {
	switch name {
	case "DBInstanceClassMemory":
		return float64(p.machine.Memory), true
	case "AllocatedStorage":
		return float64(p.machine.Storage), true
	case "DBInstanceVCPU":
		return float64(p.machine.CPUs), true
	case "EndPointPort":
		return float64(p.machine.Port), true
	case "TrueIfReplica":
		if p.machine.Replica {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

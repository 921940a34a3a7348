// Package iam evaluates policies in IAM's JSON form: who may do what to which resource, under which
// conditions. It is pure. It knows no actions, resources or keys of its own, except for the
// condition keys that callers can give values for.
//
// Invariants: a policy that has anything which this package does not understand is refused when it
// is read, and never ignored when it is evaluated. Without a statement that allows, the answer is
// no. One statement that denies outweighs all others.
package iam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// MaxSize is the longest policy, in bytes. IAM's managed policies have the same limit.
const MaxSize = 6144

// ErrInvalid says that a text is no policy that this package can keep to.
var ErrInvalid = errors.New("invalid policy")

// Policy is a policy that was checked as a whole. It is safe for concurrent use.
type Policy struct {
	statements []statement
}

type statement struct {
	sid        string
	deny       bool
	actions    patterns
	resources  patterns
	conditions []condition
}

// patterns match one of many values, or, with not, none of them.
type patterns struct {
	list []string
	not  bool
}

// document is a policy as people write it.
type document struct {
	Version   string
	ID        string `json:"Id"`
	Statement many[writtenStatement]
}

type writtenStatement struct {
	Sid, Effect             string
	Action, NotAction       many[string]
	Resource, NotResource   many[string]
	Condition               map[string]map[string]many[scalar]
	Principal, NotPrincipal json.RawMessage
}

// many is one value, or a list of them.
type many[T any] []T

func (m *many[T]) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		var all []T
		if err := strict(text, &all); err != nil {
			return err
		}
		*m = append(many[T]{}, all...)
		return nil
	}
	var one T
	if err := strict(text, &one); err != nil {
		return err
	}
	*m = many[T]{one}
	return nil
}

// scalar is a condition's value: a text, a number or a boolean, as text.
type scalar string

func (s *scalar) UnmarshalJSON(text []byte) error {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	switch v := value.(type) {
	case string:
		*s = scalar(v)
	case json.Number:
		*s = scalar(v.String())
	case bool:
		*s = scalar(fmt.Sprint(v))
	default:
		return fmt.Errorf("a condition's value is a text, a number or a boolean, not %s", text)
	}
	return nil
}

// strict decodes one JSON value and refuses members that it does not know.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the end of the value")
	}
	return nil
}

// Parse reads a policy. Every error is an ErrInvalid, and says what is wrong and where.
func Parse(text []byte) (*Policy, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("%w: it has %d bytes, and %d are allowed", ErrInvalid, len(text), MaxSize)
	}
	if err := noDuplicates(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var d document
	if err := strict(text, &d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if d.Version != "2012-10-17" && d.Version != "2008-10-17" {
		return nil, fmt.Errorf("%w: Version must be \"2012-10-17\", not %q", ErrInvalid, d.Version)
	}
	if len(d.Statement) == 0 {
		return nil, fmt.Errorf("%w: it has no Statement", ErrInvalid)
	}
	p := &Policy{}
	seen := map[string]bool{}
	for i, written := range d.Statement {
		s, err := written.check()
		if err == nil && s.sid != "" && seen[s.sid] {
			err = fmt.Errorf("the Sid %q is there twice", s.sid)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: statement %d: %w", ErrInvalid, i+1, err)
		}
		seen[s.sid] = true
		p.statements = append(p.statements, s)
	}
	return p, nil
}

func (w writtenStatement) check() (statement, error) {
	s := statement{sid: w.Sid, deny: w.Effect == "Deny"}
	if w.Effect != "Allow" && w.Effect != "Deny" {
		return s, fmt.Errorf("Effect must be \"Allow\" or \"Deny\", not %q", w.Effect)
	}
	if w.Principal != nil || w.NotPrincipal != nil {
		return s, errors.New("a policy of a key has no Principal: it is the key's own")
	}
	var err error
	if s.actions, err = either("Action", w.Action, w.NotAction, checkAction); err != nil {
		return s, err
	}
	if s.resources, err = either("Resource", w.Resource, w.NotResource, checkResource); err != nil {
		return s, err
	}
	s.conditions, err = checkConditions(w.Condition)
	return s, err
}

// either takes an element or its opposite, whichever is given.
func either(name string, is, not many[string], check func(string) error) (patterns, error) {
	p := patterns{list: is, not: is == nil}
	if (is == nil) == (not == nil) {
		return p, fmt.Errorf("exactly one of %s and Not%s must be given", name, name)
	}
	if p.not {
		name, p.list = "Not"+name, not
	}
	if len(p.list) == 0 {
		return p, fmt.Errorf("%s is empty", name)
	}
	for _, pattern := range p.list {
		if strings.Contains(pattern, "${") {
			return p, fmt.Errorf("%s %q: policy variables are not supported", name, pattern)
		}
		if err := check(pattern); err != nil {
			return p, fmt.Errorf("%s %q: %w", name, pattern, err)
		}
	}
	return p, nil
}

var actionForm = regexp.MustCompile(`^[a-zA-Z0-9-]+:[a-zA-Z0-9*?]+$`)

func checkAction(pattern string) error {
	if pattern != "*" && !actionForm.MatchString(pattern) {
		return errors.New(`an action is "*" or SERVICE:NAME, such as rds:Describe*`)
	}
	return nil
}

func checkResource(pattern string) error {
	if pattern != "*" && !strings.HasPrefix(pattern, "arn:") {
		return errors.New(`a resource is "*" or an ARN, such as arn:aws:rds:*:*:db:test-*`)
	}
	return nil
}

// matchAction matches an action in any case.
func (p patterns) matchAction(action string) bool {
	action = strings.ToLower(action)
	return p.not != slices.ContainsFunc(p.list, func(pattern string) bool {
		return glob(strings.ToLower(pattern), action)
	})
}

// matchResource matches a resource. anyCase says that the case of its name does not count.
func (p patterns) matchResource(resource string, anyCase bool) bool {
	if anyCase {
		resource = lowerName(resource)
	}
	return p.not != slices.ContainsFunc(p.list, func(pattern string) bool {
		if anyCase {
			pattern = lowerName(pattern)
		}
		return matchARN(pattern, resource)
	})
}

// noDuplicates refuses an object that names a member twice. Otherwise only the last of two
// conditions with one name would count, silently. To the decoder, names that differ only in case
// are the same name.
func noDuplicates(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	type level struct {
		keys   map[string]bool // nil in a list
		expect bool            // the next token is a member's name
	}
	var open []level
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		delim, isDelim := token.(json.Delim)
		if isDelim && (delim == '}' || delim == ']') {
			open = open[:len(open)-1]
			continue
		}
		if len(open) > 0 && open[len(open)-1].keys != nil {
			top := &open[len(open)-1]
			if top.expect {
				name, _ := token.(string)
				if lower := strings.ToLower(name); top.keys[lower] {
					return fmt.Errorf("the member %q is there twice", name)
				}
				top.keys[strings.ToLower(name)] = true
				top.expect = false
				continue
			}
			top.expect = true
		}
		if isDelim {
			l := level{}
			if delim == '{' {
				l = level{keys: map[string]bool{}, expect: true}
			}
			open = append(open, l)
		}
	}
}

package shape

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"howdah/api"
)

// times is the one form in which the services write times.
var times = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$`)

func (c *checker) output(n *node, out any) {
	c.structure(n, reflect.TypeOf(out).Elem())
}

func (c *checker) structure(n *node, t reflect.Type) {
	c.noText(n)
	facts := c.factsOf(t)
	seen := map[string]bool{}
	for _, child := range n.children {
		fact, ok := facts[child.name]
		switch {
		case !ok:
			c.fault(child, "is unknown in %s", t.Name())
		case seen[child.name]:
			c.fault(child, "is there twice")
		default:
			c.member(child, fact.is, fact.Member)
		}
		seen[child.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if facts[name].Required && !seen[name] {
			c.fault(n, "lacks the element %s", name)
		}
	}
}

// fact is what the model says of one member.
type fact struct {
	api.Member
	is reflect.Type
}

// factsOf returns the members of a structure by the names of their elements.
func (c *checker) factsOf(t reflect.Type) map[string]fact {
	if known, ok := c.facts[t]; ok {
		return known
	}
	facts := map[string]fact{}
	for field := range t.Fields() {
		if member, ok := api.MemberOf(field); ok {
			facts[member.Name] = fact{member, field.Type}
		}
	}
	c.facts[t] = facts
	return facts
}

func (c *checker) member(n *node, t reflect.Type, member api.Member) {
	switch t.Kind() {
	case reflect.Slice:
		c.list(n, t.Elem(), member)
	case reflect.Map:
		c.entries(n)
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Struct && t.Elem() != reflect.TypeFor[time.Time]() {
			c.structure(n, t.Elem())
			return
		}
		c.leaf(n)
		c.scalar(n, t.Elem(), member.Check)
	default:
		c.fault(n, "is of a type that no model has: %s", t)
	}
}

func (c *checker) list(n *node, element reflect.Type, member api.Member) {
	c.container(n, member.Element)
	for _, child := range n.children {
		switch {
		case child.name != member.Element:
		case element.Kind() == reflect.Struct:
			c.structure(child, element)
		default:
			c.leaf(child)
			c.scalar(child, element, member.Each)
		}
	}
	c.size(n, int64(len(n.children)), "elements", c.service.Checks[member.Check])
}

func (c *checker) entries(n *node) {
	c.container(n, "entry")
	for _, entry := range n.children {
		c.container(entry, "key", "value")
		for _, part := range []string{"key", "value"} {
			if found := c.only(entry, part); found != nil {
				c.leaf(found)
			}
		}
	}
}

func (c *checker) scalar(n *node, t reflect.Type, checkName string) {
	limits := c.service.Checks[checkName]
	switch t.Kind() {
	case reflect.String:
		c.text(n, limits)
	case reflect.Int32, reflect.Int64:
		value, err := strconv.ParseInt(n.text(), 10, t.Bits())
		if err != nil || strconv.FormatInt(value, 10) != n.text() {
			c.fault(n, "has %q, not an integer of %d bits", n.text(), t.Bits())
			return
		}
		c.size(n, value, "as its value", limits)
	case reflect.Float64:
		if x, err := strconv.ParseFloat(n.text(), 64); err != nil || math.IsNaN(x) || math.IsInf(x, 0) || strings.ContainsAny(n.text(), "xXpP_+") {
			c.fault(n, "has %q, not a number", n.text())
		}
	case reflect.Bool:
		if n.text() != "true" && n.text() != "false" {
			c.fault(n, "has %q, not true or false", n.text())
		}
	default:
		if _, err := time.Parse(time.RFC3339, n.text()); err != nil || !times.MatchString(n.text()) {
			c.fault(n, "has %q, not a time with milliseconds and Z", n.text())
		}
	}
}

func (c *checker) text(n *node, limits api.Check) {
	if limits.Enum != nil && !slices.Contains(limits.Enum, n.text()) {
		c.fault(n, "has %q, not one of %v", n.text(), limits.Enum)
	}
	c.size(n, int64(utf8.RuneCountInString(n.text())), "characters", limits)
	if limits.Pattern != "" && !regexp.MustCompile(`^(?:`+limits.Pattern+`)$`).MatchString(n.text()) {
		c.fault(n, "has %q, which does not match %s", n.text(), limits.Pattern)
	}
	for _, part := range limits.Without {
		if strings.Contains(n.text(), part) {
			c.fault(n, "has %q, which contains %q", n.text(), part)
		}
	}
}

func (c *checker) size(n *node, size int64, of string, limits api.Check) {
	if limits.Min != nil && size < *limits.Min || limits.Max != nil && size > *limits.Max {
		c.fault(n, "has %d %s, outside of %s", size, of, bounds(limits))
	}
}

func bounds(limits api.Check) string {
	text := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	return fmt.Sprintf("%s..%s", text(limits.Min), text(limits.Max))
}

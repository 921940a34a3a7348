package iam

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keys has the condition keys that policies may use. A key that ends in a slash stands for all that
// begin with it. Callers of Decide give values for them.
var Keys = []string{
	"aws:CurrentTime", "aws:PrincipalAccount", "aws:RequestedRegion", "aws:RequestTag/", "aws:ResourceTag/",
	"aws:SecureTransport", "aws:SourceIp", "aws:TagKeys", "aws:userid", "aws:username",
	"rds:DatabaseClass", "rds:DatabaseEngine", "rds:DatabaseName", "rds:MultiAz", "rds:Piops",
	"rds:StorageEncrypted", "rds:StorageSize",
	"rds:cluster-endpoint-tag/", "rds:cluster-tag/", "rds:db-tag/", "rds:og-tag/", "rds:subgrp-tag/", "rds:req-tag/",
	"rds:es-tag/", "rds:pg-tag/", "rds:cluster-pg-tag/",
}

// OfResource has the keys whose values depend on what a resource is like, and not on the request
// alone.
var OfResource = slices.DeleteFunc(slices.Clone(Keys), func(key string) bool { return slices.Contains(requestKeys, key) })

var requestKeys = []string{
	"aws:CurrentTime", "aws:PrincipalAccount", "aws:RequestedRegion", "aws:RequestTag/",
	"aws:SecureTransport", "aws:SourceIp", "aws:TagKeys", "aws:userid", "aws:username", "rds:req-tag/",
}

// condition is one operator with one key and the values it is compared with.
type condition struct {
	key      string // normal form
	operator operator
	ifExists bool
	// each is "" for a key with one value. For a key that has several, it says whether the
	// condition must hold for "any" or "all" of them.
	each   string
	values []string
}

// operator is one kind of comparison.
type operator struct {
	// match compares a request's value with a policy's. It is nil for Null.
	match func(have, want string) bool
	// not says that no value of the policy may match.
	not bool
	// check refuses a policy's value. nil allows any.
	check func(want string) error
}

var operators = map[string]operator{
	"StringEquals":              {match: func(a, b string) bool { return a == b }},
	"StringNotEquals":           {match: func(a, b string) bool { return a == b }, not: true},
	"StringEqualsIgnoreCase":    {match: strings.EqualFold},
	"StringNotEqualsIgnoreCase": {match: strings.EqualFold, not: true},
	"StringLike":                {match: func(a, b string) bool { return glob(b, a) }},
	"StringNotLike":             {match: func(a, b string) bool { return glob(b, a) }, not: true},
	"Bool":                      {match: strings.EqualFold, check: isBool},
	"Null":                      {check: isBool},
	"NumericEquals":             numeric(func(a, b float64) bool { return a == b }),
	"NumericNotEquals":          opposite(numeric(func(a, b float64) bool { return a == b })),
	"NumericLessThan":           numeric(func(a, b float64) bool { return a < b }),
	"NumericLessThanEquals":     numeric(func(a, b float64) bool { return a <= b }),
	"NumericGreaterThan":        numeric(func(a, b float64) bool { return a > b }),
	"NumericGreaterThanEquals":  numeric(func(a, b float64) bool { return a >= b }),
	"DateEquals":                date(func(a, b time.Time) bool { return a.Equal(b) }),
	"DateNotEquals":             opposite(date(func(a, b time.Time) bool { return a.Equal(b) })),
	"DateLessThan":              date(func(a, b time.Time) bool { return a.Before(b) }),
	"DateLessThanEquals":        date(func(a, b time.Time) bool { return !a.After(b) }),
	"DateGreaterThan":           date(func(a, b time.Time) bool { return a.After(b) }),
	"DateGreaterThanEquals":     date(func(a, b time.Time) bool { return !a.Before(b) }),
	"IpAddress":                 {match: inNetwork, check: isNetwork},
	"NotIpAddress":              {match: inNetwork, check: isNetwork, not: true},
}

func opposite(o operator) operator {
	o.not = true
	return o
}

func numeric(compare func(a, b float64) bool) operator {
	return operator{
		match: func(have, want string) bool {
			a, errA := strconv.ParseFloat(have, 64)
			b, errB := strconv.ParseFloat(want, 64)
			return errA == nil && errB == nil && compare(a, b)
		},
		check: func(want string) error {
			if _, err := strconv.ParseFloat(want, 64); err != nil {
				return fmt.Errorf("%q is no number", want)
			}
			return nil
		},
	}
}

func date(compare func(a, b time.Time) bool) operator {
	return operator{
		match: func(have, want string) bool {
			a, errA := parseDate(have)
			b, errB := parseDate(want)
			return errA == nil && errB == nil && compare(a, b)
		},
		check: func(want string) error {
			if _, err := parseDate(want); err != nil {
				return fmt.Errorf("%q is no time such as 2026-01-31T12:00:00Z", want)
			}
			return nil
		},
	}
}

func parseDate(text string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, text)
}

func isBool(want string) error {
	if !strings.EqualFold(want, "true") && !strings.EqualFold(want, "false") {
		return fmt.Errorf("%q is neither true nor false", want)
	}
	return nil
}

func network(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Prefix(a.BitLen())
	}
	return netip.ParsePrefix(text)
}

func isNetwork(want string) error {
	if _, err := network(want); err != nil {
		return fmt.Errorf("%q is no address or network such as 10.0.0.0/8", want)
	}
	return nil
}

func inNetwork(have, want string) bool {
	in, errNet := network(want)
	address, errAddr := netip.ParseAddr(have)
	return errNet == nil && errAddr == nil && in.Contains(address.Unmap())
}

func checkConditions(written map[string]map[string]many[scalar]) ([]condition, error) {
	var all []condition
	for _, name := range slices.Sorted(maps.Keys(written)) {
		for _, key := range slices.Sorted(maps.Keys(written[name])) {
			c, err := newCondition(name, key, written[name][key])
			if err != nil {
				return nil, fmt.Errorf("Condition %s: %w", name, err)
			}
			all = append(all, c)
		}
	}
	return all, nil
}

func newCondition(name, key string, values many[scalar]) (condition, error) {
	c := condition{key: normalKey(key)}
	rest := name
	for prefix, each := range map[string]string{"ForAnyValue:": "any", "ForAllValues:": "all"} {
		if after, ok := strings.CutPrefix(name, prefix); ok {
			rest, c.each = after, each
		}
	}
	rest, c.ifExists = strings.CutSuffix(rest, "IfExists")
	var known bool
	if c.operator, known = operators[rest]; !known || rest == "Null" && (c.ifExists || c.each != "") {
		return c, fmt.Errorf("the operator is not supported")
	}
	if !knownKey(key) {
		return c, fmt.Errorf("the condition key %q is not supported: supported are %s", key, strings.Join(Keys, ", "))
	}
	// Without a quantifier, only one of several values would have to match.
	if several := c.key == "aws:tagkeys"; several != (c.each != "") && rest != "Null" {
		return c, fmt.Errorf("ForAllValues and ForAnyValue are for aws:TagKeys, and it needs one of them")
	}
	if len(values) == 0 {
		return c, fmt.Errorf("%s has no values", key)
	}
	for _, v := range values {
		if strings.Contains(string(v), "${") {
			return c, fmt.Errorf("%s %q: policy variables are not supported", key, v)
		}
		if c.operator.check != nil {
			if err := c.operator.check(string(v)); err != nil {
				return c, fmt.Errorf("%s: %w", key, err)
			}
		}
		c.values = append(c.values, string(v))
	}
	return c, nil
}

func knownKey(key string) bool { return isOneOf(Keys, key) }

// isOneOf reports whether a key is in a list such as Keys.
func isOneOf(list []string, key string) bool {
	return slices.ContainsFunc(list, func(known string) bool {
		if strings.HasSuffix(known, "/") {
			return len(key) > len(known) && strings.EqualFold(key[:len(known)], known)
		}
		return strings.EqualFold(key, known)
	})
}

// normalKey returns a key in lower case, except for what follows its first slash. That is a tag's
// key, and its case counts.
func normalKey(key string) string {
	name, tag, tagged := strings.Cut(key, "/")
	if tagged {
		return strings.ToLower(name) + "/" + tag
	}
	return strings.ToLower(name)
}

func normal(context map[string][]string) map[string][]string {
	all := make(map[string][]string, len(context))
	for key, values := range context {
		all[normalKey(key)] = values
	}
	return all
}

func (c condition) holds(context map[string][]string) bool {
	have, exists := context[c.key]
	exists = exists && len(have) > 0
	if c.operator.match == nil { // Null
		return slices.ContainsFunc(c.values, func(v string) bool { return strings.EqualFold(v, "true") != exists })
	}
	if !exists {
		// An absent value differs from everything. And all of no values are as they should be.
		return c.ifExists || c.each == "all" || c.each == "" && c.operator.not
	}
	if c.each == "all" {
		return !slices.ContainsFunc(have, func(v string) bool { return !c.one(v) })
	}
	return slices.ContainsFunc(have, c.one)
}

// unknown reports whether the value depends on a resource that nobody could look at.
func (c condition) unknown(context map[string][]string) bool {
	_, given := context[c.key]
	return !given && isOneOf(OfResource, c.key)
}

// one compares one value of the request with all values of the policy.
func (c condition) one(have string) bool {
	return c.operator.not != slices.ContainsFunc(c.values, func(want string) bool { return c.operator.match(have, want) })
}

package iam

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func policy(statements string) string {
	return `{"Version":"2012-10-17","Statement":` + statements + `}`
}

func mustParse(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

const (
	db  = "arn:aws:rds:us-west-2:123456789012:db:"
	all = `{"Effect":"Allow","Action":"*","Resource":"*"}`
)

func TestDecide(t *testing.T) {
	for _, test := range []struct {
		name, statements, action, resource string
		context                            map[string][]string
		want                               Decision
	}{
		{"everything", all, "rds:DeleteDBInstance", db + "a", nil, Allowed},
		{"nothing that applies", `{"Effect":"Allow","Action":"rds:Describe*","Resource":"*"}`, "rds:DeleteDBInstance", db + "a", nil, NotAllowed},
		{"a prefix", `{"Effect":"Allow","Action":"rds:Describe*","Resource":"*"}`, "rds:DescribeDBInstances", db + "*", nil, Allowed},
		{"the case of actions does not count", `{"Effect":"Allow","Action":"RDS:describe*","Resource":"*"}`, "rds:DescribeDBInstances", db + "*", nil, Allowed},
		{"another service", `{"Effect":"Allow","Action":"rds:*","Resource":"*"}`, "howdah:Wipe", "*", nil, NotAllowed},
		{"one of several actions", `{"Effect":"Allow","Action":["rds:StopDBInstance","rds:StartDBInstance"],"Resource":"*"}`, "rds:StartDBInstance", db + "a", nil, Allowed},
		{"a deny outweighs", `[` + all + `,{"Effect":"Deny","Action":"rds:Delete*","Resource":"` + db + `prod-*"}]`, "rds:DeleteDBInstance", db + "prod-1", nil, Denied},
		{"a deny before an allow", `[{"Effect":"Deny","Action":"rds:Delete*","Resource":"*"},` + all + `]`, "rds:DeleteDBInstance", db + "prod-1", nil, Denied},
		{"a deny of others", `[` + all + `,{"Effect":"Deny","Action":"rds:Delete*","Resource":"` + db + `prod-*"}]`, "rds:DeleteDBInstance", db + "test-1", nil, Allowed},
		{"all but", `{"Effect":"Allow","NotAction":"rds:Delete*","Resource":"*"}`, "rds:CreateDBInstance", db + "a", nil, Allowed},
		{"not all but", `{"Effect":"Allow","NotAction":["rds:Delete*"],"Resource":"*"}`, "rds:DeleteDBCluster", db + "a", nil, NotAllowed},
		{"other resources", `{"Effect":"Deny","Action":"*","NotResource":"` + db + `mine"}`, "rds:DeleteDBInstance", db + "yours", nil, Denied},
		{"not other resources", `{"Effect":"Deny","Action":"*","NotResource":"` + db + `mine"}`, "rds:DeleteDBInstance", db + "mine", nil, NotAllowed},
		{"a list needs all", `{"Effect":"Allow","Action":"*","Resource":"` + db + `test-*"}`, "rds:DescribeDBInstances", db + "*", nil, NotAllowed},
		{"a tag", when("StringEquals", "aws:ResourceTag/team", `"blue"`), "rds:StopDBInstance", db + "a", with("aws:ResourceTag/team", "blue"), Allowed},
		{"another tag's value", when("StringEquals", "aws:ResourceTag/team", `"blue"`), "rds:StopDBInstance", db + "a", with("aws:ResourceTag/team", "Blue"), NotAllowed},
		{"no tag", when("StringEquals", "aws:ResourceTag/team", `"blue"`), "rds:StopDBInstance", db + "a", nil, NotAllowed},
		{"the case of a tag's key counts", when("StringEquals", "aws:resourcetag/Team", `"blue"`), "rds:StopDBInstance", db + "a", with("aws:ResourceTag/team", "blue"), NotAllowed},
		{"the case of a key does not", when("StringEquals", "AWS:resourceTAG/team", `"blue"`), "rds:StopDBInstance", db + "a", with("aws:ResourceTag/team", "blue"), Allowed},
		{"if it exists", when("StringEqualsIfExists", "rds:DatabaseClass", `["db.t3.micro","db.t3.small"]`), "rds:X", "*", nil, Allowed},
		{"it exists", when("StringEqualsIfExists", "rds:DatabaseClass", `["db.t3.micro","db.t3.small"]`), "rds:X", "*", with("rds:DatabaseClass", "db.r5.large"), NotAllowed},
		{"one of several values", when("StringEqualsIfExists", "rds:DatabaseClass", `["db.t3.micro","db.t3.small"]`), "rds:X", "*", with("rds:DatabaseClass", "db.t3.small"), Allowed},
		{"like", when("StringLike", "rds:DatabaseClass", `"db.t?.*"`), "rds:X", "*", with("rds:DatabaseClass", "db.t3.small"), Allowed},
		{"a star means itself in StringEquals", when("StringEquals", "rds:DatabaseClass", `"db.*"`), "rds:X", "*", with("rds:DatabaseClass", "db.t3.small"), NotAllowed},
		{"not like", when("StringNotLike", "rds:DatabaseClass", `["db.r*","db.m*"]`), "rds:X", "*", with("rds:DatabaseClass", "db.m5.large"), NotAllowed},
		{"what is absent differs", when("StringNotEquals", "rds:DatabaseClass", `"db.r5.large"`), "rds:X", "*", nil, Allowed},
		{"ignore case", when("StringEqualsIgnoreCase", "rds:DatabaseEngine", `"POSTGRES"`), "rds:X", "*", with("rds:DatabaseEngine", "postgres"), Allowed},
		{"a number", when("NumericLessThanEquals", "rds:StorageSize", `100`), "rds:X", "*", with("rds:StorageSize", "100"), Allowed},
		{"too large a number", when("NumericLessThan", "rds:StorageSize", `"100"`), "rds:X", "*", with("rds:StorageSize", "100"), NotAllowed},
		{"no number", when("NumericLessThan", "rds:StorageSize", `"100"`), "rds:X", "*", with("rds:StorageSize", "many"), NotAllowed},
		{"a boolean", when("Bool", "rds:MultiAz", `true`), "rds:X", "*", with("rds:MultiAz", "true"), Allowed},
		{"an address", when("IpAddress", "aws:SourceIp", `["10.0.0.0/8","192.0.2.1"]`), "rds:X", "*", with("aws:SourceIp", "10.1.2.3"), Allowed},
		{"a mapped address", when("IpAddress", "aws:SourceIp", `"10.0.0.0/8"`), "rds:X", "*", with("aws:SourceIp", "::ffff:10.1.2.3"), Allowed},
		{"another address", when("NotIpAddress", "aws:SourceIp", `["10.0.0.0/8","192.0.2.1"]`), "rds:X", "*", with("aws:SourceIp", "192.0.2.1"), NotAllowed},
		{"a time", when("DateLessThan", "aws:CurrentTime", `"2026-12-01T00:00:00Z"`), "rds:X", "*", with("aws:CurrentTime", "2026-11-22T00:00:00Z"), Allowed},
		{"too late", when("DateLessThan", "aws:CurrentTime", `"2026-11-01"`), "rds:X", "*", with("aws:CurrentTime", "2026-11-22T00:00:00Z"), NotAllowed},
		{"is absent", when("Null", "aws:RequestTag/team", `true`), "rds:X", "*", nil, Allowed},
		{"is not absent", when("Null", "aws:RequestTag/team", `"false"`), "rds:X", "*", nil, NotAllowed},
		{"all tags are known", when("ForAllValues:StringEquals", "aws:TagKeys", `["a","b"]`), "rds:X", "*", with("aws:TagKeys", "a", "b"), Allowed},
		{"one tag is not", when("ForAllValues:StringEquals", "aws:TagKeys", `["a","b"]`), "rds:X", "*", with("aws:TagKeys", "a", "c"), NotAllowed},
		{"of no tags all are", when("ForAllValues:StringEquals", "aws:TagKeys", `["a","b"]`), "rds:X", "*", nil, Allowed},
		{"any tag is known", when("ForAnyValue:StringLike", "aws:TagKeys", `"a*"`), "rds:X", "*", with("aws:TagKeys", "c", "ab"), Allowed},
		{"of no tags none is", when("ForAnyValue:StringLike", "aws:TagKeys", `"a*"`), "rds:X", "*", nil, NotAllowed},
		{"all conditions must hold", `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:RequestTag/a":"1","aws:RequestTag/b":"2"}}}`,
			"rds:X", "*", with("aws:RequestTag/a", "1"), NotAllowed},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := mustParse(t, policy(test.statements)).Decide(Request{Action: test.action, Resource: test.resource, Context: test.context})
			if got != test.want {
				t.Errorf("decided %d, want %d", got, test.want)
			}
		})
	}
}

func when(operator, key, values string) string {
	return `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"` + operator + `":{"` + key + `":` + values + `}}}`
}

func with(key string, values ...string) map[string][]string { return map[string][]string{key: values} }

func TestMatchARN(t *testing.T) {
	for _, test := range []struct {
		pattern, arn string
		want         bool
	}{
		{"*", "arn:aws:rds:us-west-2:1:db:a", true},
		{"arn:aws:rds:us-west-2:1:db:a", "arn:aws:rds:us-west-2:1:db:a", true},
		{"arn:aws:rds:us-west-2:1:db:a", "arn:aws:rds:us-west-2:1:db:ab", false},
		{"arn:aws:rds:*:*:db:a", "arn:aws:rds:us-west-2:1:db:a", true},
		{"arn:aws:rds:*:db:a", "arn:aws:rds:us-west-2:1:db:a", false},
		{"arn:aws:rds:*", "arn:aws:rds:us-west-2:1:db:a", true},
		{"arn:aws:rds:us-*", "arn:aws:rds:us-west-2:1:db:a", true},
		{"arn:aws:rds:eu-*", "arn:aws:rds:us-west-2:1:db:a", false},
		{"arn:aws:rds:us-west-2", "arn:aws:rds:us-west-2:1:db:a", false},
		{"arn:aws:rds:us-west-2:1:*", "arn:aws:rds:us-west-2:1:og:default:postgres-15", true},
		{"arn:aws:rds:us-west-2:1:og:default*", "arn:aws:rds:us-west-2:1:og:default:postgres-15", true},
		{"arn:aws:rds:us-west-2:1:db:?", "arn:aws:rds:us-west-2:1:db:ab", false},
		{"arn:aws:rds:us-west-2:1:cluster:*", "arn:aws:rds:us-west-2:1:cluster-endpoint:a", false},
		{"arn:aws:rds:us-west-2:1:db:*", "*", false},
	} {
		if got := matchARN(test.pattern, test.arn); got != test.want {
			t.Errorf("%s, %s: %v", test.pattern, test.arn, got)
		}
	}
}

// TestAnyCase checks names whose case does not count. It counts neither in policies nor in
// requests. The case of the ARN's other parts always counts.
func TestAnyCase(t *testing.T) {
	const es = "arn:aws:rds:us-west-2:1:es:"
	for _, test := range []struct {
		pattern, arn   string
		exact, anyCase Decision
	}{
		{es + "Watch", es + "watch", NotAllowed, Denied},
		{es + "watch", es + "WATCH", NotAllowed, Denied},
		{es + "Wa*", es + "watch", NotAllowed, Denied},
		{"arn:aws:rds:*:*:ES:Watch", es + "watch", NotAllowed, Denied},
		{"arn:aws:rds:*", es + "watch", Denied, Denied},
		{"*", es + "Watch", Denied, Denied},
		{es + "other", es + "watch", NotAllowed, NotAllowed},
		{"arn:aws:RDS:us-west-2:1:es:watch", es + "watch", NotAllowed, NotAllowed},
		{"arn:aws:rds:US-*", es + "watch", NotAllowed, NotAllowed},
	} {
		p := mustParse(t, policy(`{"Effect":"Deny","Action":"*","Resource":"`+test.pattern+`"}`))
		others := mustParse(t, policy(`{"Effect":"Deny","Action":"*","NotResource":"`+test.pattern+`"}`))
		for anyCase, want := range map[bool]Decision{false: test.exact, true: test.anyCase} {
			r := Request{Action: "rds:X", Resource: test.arn, AnyCase: anyCase}
			if got := p.Decide(r); got != want {
				t.Errorf("%s, %s, any case %v: %d, want %d", test.pattern, test.arn, anyCase, got, want)
			}
			if got := others.Decide(r); got == want {
				t.Errorf("all but %s, %s, any case %v: %d too", test.pattern, test.arn, anyCase, got)
			}
		}
	}
}

// TestBlind checks that what nobody could look up may be anything. So a statement that denies by it
// denies, and one that allows by it does not allow.
func TestBlind(t *testing.T) {
	deny := func(operator, key, values string) string {
		return `[` + all + `,` + strings.Replace(when(operator, key, values), "Allow", "Deny", 1) + `]`
	}
	for _, test := range []struct {
		name, statements string
		context          map[string][]string
		seen, blind      Decision
	}{
		{"a deny by a tag", deny("StringEquals", "aws:ResourceTag/team", `"blue"`), nil, Allowed, Denied},
		{"a deny unless it has a tag", deny("StringNotEquals", "aws:ResourceTag/team", `"blue"`), nil, Denied, Denied},
		{"a deny by a tag that there may be", deny("StringEqualsIfExists", "aws:ResourceTag/team", `"blue"`), nil, Denied, Denied},
		{"a deny by RDS's own name for tags", deny("StringLike", "rds:db-tag/team", `"b*"`), nil, Allowed, Denied},
		{"a deny without tags", deny("Null", "aws:ResourceTag/team", `"true"`), nil, Denied, Denied},
		{"a deny with tags", deny("Null", "aws:ResourceTag/team", `"false"`), nil, Allowed, Denied},
		{"a deny by what it is like", deny("StringEquals", "rds:DatabaseClass", `"db.r5.large"`), nil, Allowed, Denied},
		{"a deny by what the request says", deny("StringEquals", "rds:DatabaseClass", `"db.r5.large"`), with("rds:DatabaseClass", "db.t3.micro"), Allowed, Allowed},
		{"a deny by the request's tags", deny("StringEquals", "aws:RequestTag/team", `"blue"`), nil, Allowed, Allowed},
		{"a deny by a tag and a region", `[` + all + `,{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/team":"blue","aws:RequestedRegion":"eu-west-1"}}}]`,
			with("aws:RequestedRegion", "us-east-1"), Allowed, Allowed},
		{"an allow unless it has a tag", when("StringNotEquals", "aws:ResourceTag/stage", `"prod"`), nil, Allowed, NotAllowed},
		{"an allow if there is no tag", when("Null", "rds:cluster-tag/stage", `"true"`), nil, Allowed, NotAllowed},
		{"an allow without conditions", all, nil, Allowed, Allowed},
	} {
		p := mustParse(t, policy(test.statements))
		for blind, want := range map[bool]Decision{false: test.seen, true: test.blind} {
			if got := p.Decide(Request{Action: "rds:X", Resource: db + "a", Context: test.context, Blind: blind}); got != want {
				t.Errorf("%s, blind %v: %d, want %d", test.name, blind, got, want)
			}
		}
	}
}

// TestKeysOfResources checks that each key belongs to the request or to a resource.
func TestKeysOfResources(t *testing.T) {
	ofRequest := regexp.MustCompile(`^aws:(CurrentTime|PrincipalAccount|RequestedRegion|RequestTag/|SecureTransport|SourceIp|TagKeys|userid|username)$|^rds:req-tag/$`)
	for _, key := range Keys {
		if of := slices.Contains(OfResource, key); of == ofRequest.MatchString(key) {
			t.Errorf("%s: of a resource: %v", key, of)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{``, "EOF"},
		{`{`, "EOF"},
		{`[]`, ""},
		{`{"Statement":[]}`, "Version"},
		{`{"Version":"2020-01-01","Statement":` + all + `}`, "2020-01-01"},
		{`{"Version":"2012-10-17"}`, "no Statement"},
		{policy(`[]`), "no Statement"},
		{policy(all) + "x", "invalid character"},
		{policy(all) + policy(all), "follows"},
		{policy(`{"Effect":"allow","Action":"*","Resource":"*"}`), `not "allow"`},
		{policy(`{"Effect":"Allow","Resource":"*"}`), "Action and NotAction"},
		{policy(`{"Effect":"Allow","Action":"*","NotAction":"*","Resource":"*"}`), "Action and NotAction"},
		{policy(`{"Effect":"Allow","Action":"*"}`), "Resource and NotResource"},
		{policy(`{"Effect":"Allow","Action":[],"Resource":"*"}`), "Action is empty"},
		{policy(`{"Effect":"Allow","Action":"DescribeDBInstances","Resource":"*"}`), "SERVICE:NAME"},
		{policy(`{"Effect":"Allow","Action":"rds:","Resource":"*"}`), "SERVICE:NAME"},
		{policy(`{"Effect":"Allow","Action":"*","Resource":"db:a"}`), "ARN"},
		{policy(`{"Effect":"Allow","Action":"*","Resource":"arn:aws:rds:*:*:db:${aws:username}"}`), "variables"},
		{policy(`{"Effect":"Allow","Action":1,"Resource":"*"}`), "cannot unmarshal"},
		{policy(`{"Effect":"Allow","Action":"*","Resource":"*","Principal":"*"}`), "Principal"},
		{policy(`{"Effect":"Allow","Action":"*","Resource":"*","Conditions":{}}`), "Conditions"},
		{policy(`[{"Sid":"a","Effect":"Allow","Action":"*","Resource":"*"},{"Sid":"a","Effect":"Allow","Action":"*","Resource":"*"}]`), "twice"},
		{policy(`{"Effect":"Deny","Action":"*","Resource":"*","effect":"Allow"}`), "twice"},
		{policy(`{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:RequestTag/a":"1","aws:RequestTag/a":"2"}}}`), "twice"},
		{policy(when("StringIs", "aws:RequestTag/a", `"1"`)), "StringIs: the operator is not supported"},
		{policy(when("NullIfExists", "aws:RequestTag/a", `"true"`)), "NullIfExists: the operator is not supported"},
		{policy(when("StringEquals", "aws:PrincipalOrgID", `"1"`)), `"aws:PrincipalOrgID" is not supported`},
		{policy(when("StringEquals", "aws:RequestTag/", `"1"`)), `"aws:RequestTag/" is not supported`},
		{policy(when("StringEquals", "aws:RequestTag/a", `[]`)), "no values"},
		{policy(when("StringEquals", "aws:RequestTag/a", `{}`)), "a text, a number or a boolean"},
		{policy(when("StringEquals", "aws:RequestTag/a", `"${aws:username}"`)), "variables"},
		{policy(when("StringEquals", "aws:TagKeys", `"a"`)), "ForAllValues"},
		{policy(when("ForAllValues:StringEquals", "aws:RequestTag/a", `"a"`)), "ForAllValues"},
		{policy(when("NumericEquals", "rds:StorageSize", `"many"`)), "no number"},
		{policy(when("Bool", "rds:MultiAz", `"yes"`)), "neither true nor false"},
		{policy(when("IpAddress", "aws:SourceIp", `"10.0.0.0/99"`)), "network"},
		{policy(when("DateEquals", "aws:CurrentTime", `"tomorrow"`)), "time"},
		{policy(`"` + strings.Repeat("a", MaxSize) + `"`), "6144"},
	} {
		if _, err := Parse([]byte(test.text)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.200s: %v, want %q", test.text, err, test.want)
		}
	}
}

func TestEveryKeyIsKnown(t *testing.T) {
	for _, key := range Keys {
		if strings.HasSuffix(key, "/") {
			key += "team"
		}
		operator := "StringEquals"
		if key == "aws:TagKeys" {
			operator = "ForAnyValue:StringEquals"
		}
		mustParse(t, policy(when(operator, key, `"x"`)))
	}
}

// FuzzGlob compares glob with a regular expression of the same meaning.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"*", "a"}, {"a*b?c", "axxbyc"}, {"**a", "ba"}, {"?", "ä"}, {"*a*b*", "ba"}, {"[.]", "x"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		pattern, text = strings.ToValidUTF8(pattern, ""), strings.ToValidUTF8(text, "")
		expression := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
		r, err := regexp.Compile(`(?s)^(?:` + expression + `)$`)
		if err != nil {
			t.Skip()
		}
		if got, want := glob(pattern, text), r.MatchString(text); got != want {
			t.Errorf("glob(%q, %q) = %v, want %v", pattern, text, got, want)
		}
	})
}

// FuzzParse checks that each policy is refused or decides, and that a statement which denies
// everything outweighs all others.
func FuzzParse(f *testing.F) {
	f.Add(policy(all), "rds:DeleteDBInstance", db+"a", "team", "blue")
	f.Add(policy(when("ForAnyValue:StringLikeIfExists", "aws:TagKeys", `["a*"]`)), "rds:X", "*", "a", "")
	f.Add(policy(`[{"Effect":"Deny","NotAction":"rds:*","NotResource":"arn:aws:*","Condition":{"IpAddress":{"aws:SourceIp":"::/0"}}}]`), "a:b", "*", "", "")
	f.Add(`{"Version":"2012-10-17","Statement":[[]]}`, "", "", "", "")
	f.Fuzz(func(t *testing.T, text, action, resource, tag, value string) {
		p, err := Parse([]byte(text))
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%v", err)
			}
			return
		}
		context := map[string][]string{"aws:RequestTag/" + tag: {value}, "aws:TagKeys": {tag}, "aws:SourceIp": {value}}
		r := Request{Action: action, Resource: resource, Context: context}
		first := p.Decide(r)
		if p.Decide(r) != first {
			t.Error("two answers to one request")
		}
		deny := mustParse(t, policy(`{"Effect":"Deny","Action":"*","Resource":"*"}`))
		both := &Policy{statements: append(append([]statement{}, p.statements...), deny.statements...)}
		if both.Decide(r) != Denied {
			t.Error("a deny of everything was outweighed")
		}
	})
}

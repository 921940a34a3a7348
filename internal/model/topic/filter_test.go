package topic

import (
	"fmt"
	"strings"
	"testing"
)

// attributes of most cases.
var attributes = map[string]Attribute{
	"store": {"String", "example_corp"}, "price": {"Number", "210.75"}, "kinds": {"String.Array", `["soccer","rugby",7,true,null]`},
	"ip": {"String", "10.0.0.7"}, "digits": {"String", "210"}, "raw": {"Binary", "AQI="}, "label": {"Number.float", "100"}, "empty": {"String.Array", "[]"},
}

func TestMatchAttributes(t *testing.T) {
	cases := []struct {
		policy string
		want   bool
	}{
		{`{}`, true},
		{`{"store":["example_corp"]}`, true},
		{`{"store":["other","example_corp"]}`, true},
		{`{"store":["Example_corp"]}`, false},
		{`{"store":["other"]}`, false},
		{`{"store":["example_corp"],"price":[1]}`, false},
		{`{"none":["x"]}`, false},

		{`{"store":[{"prefix":"example"}]}`, true},
		{`{"store":[{"prefix":"corp"}]}`, false},
		{`{"store":[{"suffix":"corp"}]}`, true},
		{`{"store":[{"suffix":"example"}]}`, false},
		{`{"store":[{"equals-ignore-case":"EXAMPLE_corp"}]}`, true},
		{`{"store":[{"equals-ignore-case":"example"}]}`, false},
		{`{"price":[{"prefix":"2"}]}`, false},

		{`{"store":[{"anything-but":"other"}]}`, true},
		{`{"store":[{"anything-but":["other","example_corp"]}]}`, false},
		{`{"store":[{"anything-but":{"prefix":"exa"}}]}`, false},
		{`{"store":[{"anything-but":{"prefix":["oth","exb"]}}]}`, true},
		{`{"store":[{"anything-but":{"suffix":"corp"}}]}`, false},
		{`{"store":[{"anything-but":{"equals-ignore-case":["EXAMPLE_CORP"]}}]}`, false},
		{`{"price":[{"anything-but":[100,500]}]}`, true},
		{`{"price":[{"anything-but":210.75}]}`, false},
		{`{"none":[{"anything-but":"x"}]}`, false},

		{`{"price":[210.75]}`, true},
		{`{"price":[2.1075e2]}`, true},
		{`{"price":["210.75"]}`, false},
		{`{"digits":["210"]}`, true},
		{`{"digits":[210]}`, false},
		{`{"price":[{"numeric":["=",210.75]}]}`, true},
		{`{"price":[{"numeric":[">",200]}]}`, true},
		{`{"price":[{"numeric":[">=",210.75,"<",300]}]}`, true},
		{`{"price":[{"numeric":[">",210.75,"<=",300]}]}`, false},
		{`{"price":[{"numeric":["<",0]}]}`, false},
		{`{"label":[{"numeric":["<=",100]}]}`, true},
		{`{"digits":[{"numeric":[">",0]}]}`, false},

		{`{"kinds":["rugby"]}`, true},
		{`{"kinds":["tennis",7]}`, true},
		{`{"kinds":[true]}`, true},
		{`{"kinds":[false]}`, false},
		{`{"kinds":[null]}`, true},
		{`{"kinds":["tennis"]}`, false},
		{`{"empty":["x"]}`, false},

		{`{"store":[{"exists":true}]}`, true},
		{`{"store":[{"exists":false}]}`, false},
		{`{"none":[{"exists":false}]}`, true},
		{`{"none":[{"exists":true}]}`, false},
		{`{"none":["x",{"exists":false}]}`, true},
		{`{"raw":[{"exists":true}]}`, false},

		{`{"ip":[{"cidr":"10.0.0.0/24"}]}`, true},
		{`{"ip":[{"cidr":"10.0.1.0/24"}]}`, false},
		{`{"ip":[{"cidr":"10.0.0.7"}]}`, true},
		{`{"store":[{"cidr":"0.0.0.0/0"}]}`, false},

		{`{"$or":[{"store":["other"]},{"price":[210.75]}]}`, true},
		{`{"$or":[{"store":["other"]},{"price":[1]}]}`, false},
		{`{"digits":["210"],"$or":[{"store":["other"]},{"store":["example_corp"]}]}`, true},
		{`{"digits":["211"],"$or":[{"store":["other"]},{"store":["example_corp"]}]}`, false},
	}
	for _, c := range cases {
		f, err := ParseFilter(c.policy, false)
		if err != nil {
			t.Errorf("%s: %v", c.policy, err)
			continue
		}
		if got := f.MatchAttributes(attributes); got != c.want {
			t.Errorf("%s matches: %v, want %v", c.policy, got, c.want)
		}
	}
}

func TestMatchBody(t *testing.T) {
	const body = `{"store":"corp","price":{"amount":7.5,"unit":"EUR","tags":["a","b"]},"list":[{"n":1},{"n":2}],"none":null}`
	cases := []struct {
		policy, body string
		want         bool
	}{
		{`{"store":["corp"]}`, body, true},
		{`{"price":{"amount":[{"numeric":["<",8]}],"unit":["EUR","USD"]}}`, body, true},
		{`{"price":{"amount":[{"numeric":[">",8]}]}}`, body, false},
		{`{"price":{"tags":["b"]}}`, body, true},
		{`{"list":{"n":[2]}}`, body, true},
		{`{"list":{"n":[3]}}`, body, false},
		{`{"store":{"inner":["x"]}}`, body, false},
		{`{"price":["x"]}`, body, false},
		{`{"price":{"discount":[{"exists":false}]}}`, body, true},
		{`{"gone":{"discount":[{"exists":false}]}}`, body, true},
		{`{"gone":{"discount":[{"exists":true}]}}`, body, false},
		{`{"none":[null]}`, body, true},
		{`{"price":{"$or":[{"unit":["USD"]},{"amount":[7.5]}]}}`, body, true},
		{`{"store":["corp"]}`, `no JSON`, false},
		{`{"store":["corp"]}`, `["corp"]`, false},
		{`{"store":[{"exists":false}]}`, `{} behind`, false},
	}
	for _, c := range cases {
		f, err := ParseFilter(c.policy, true)
		if err != nil {
			t.Errorf("%s: %v", c.policy, err)
			continue
		}
		if got := f.MatchBody(c.body); got != c.want {
			t.Errorf("%s matches: %v, want %v", c.policy, got, c.want)
		}
	}
}

func TestParseFilterRefuses(t *testing.T) {
	many := make([]string, 151)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	cases := []struct {
		policy string
		nested bool
		want   string
	}{
		{``, false, "parse"},
		{`x`, false, "parse"},
		{`{} {}`, false, "behind"},
		{`[]`, false, "object"},
		{`{"a":"b"}`, false, "list"},
		{`{"a":[]}`, false, "empty"},
		{`{"a":{}}`, true, "empty"},
		{`{"a":{"b":["c"]}}`, false, "nested"},
		{`{"a":[["b"]]}`, false, "condition"},
		{`{"a":[{}]}`, false, "one operator"},
		{`{"a":[{"prefix":"x","suffix":"y"}]}`, false, "one operator"},
		{`{"a":[{"wildcard":"x"}]}`, false, "wildcard"},
		{`{"a":[{"prefix":1}]}`, false, "prefix"},
		{`{"a":[{"suffix":null}]}`, false, "suffix"},
		{`{"a":[{"exists":"yes"}]}`, false, "exists"},
		{`{"a":[{"cidr":"x"}]}`, false, "network"},
		{`{"a":[{"anything-but":[]}]}`, false, "empty"},
		{`{"a":[{"anything-but":true}]}`, false, "anything-but"},
		{`{"a":[{"anything-but":{"cidr":"x"}}]}`, false, "cidr"},
		{`{"a":[{"anything-but":{"prefix":""}}]}`, false, "prefix"},
		{`{"a":[{"anything-but":{}}]}`, false, "operator"},
		{`{"a":[{"numeric":"x"}]}`, false, "numeric"},
		{`{"a":[{"numeric":["=","x"]}]}`, false, "number"},
		{`{"a":[{"numeric":["~",1]}]}`, false, "comparison"},
		{`{"a":[{"numeric":["<",1,">",2]}]}`, false, "range"},
		{`{"a":[{"numeric":[">",2,"<",1]}]}`, false, "range"},
		{`{"a":[1e10]}`, false, "10^9"},
		{`{"a":["x"],"b":["x"],"c":["x"],"d":["x"],"e":["x"],"f":["x"]}`, false, "5 keys"},
		{`{"a":[` + strings.Join(many, ",") + `]}`, false, "combinations"},
		{`{"a":["` + strings.Repeat("x", maxPolicyBytes) + `"]}`, false, "larger"},
		{strings.Repeat(`{"a":`, 20) + `["x"]` + strings.Repeat(`}`, 20), true, "deep"},
	}
	for _, c := range cases {
		if _, err := ParseFilter(c.policy, c.nested); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: %v, want %q", c.policy, err, c.want)
		}
	}
}

// FuzzFilter: any policy and any body get an answer.
func FuzzFilter(f *testing.F) {
	f.Add(`{"a":[{"numeric":[">",1,"<",2]}]}`, `{"a":1.5}`)
	f.Add(`{"a":{"b":[{"anything-but":{"prefix":["x"]}}]}}`, `{"a":[{"b":"y"}]}`)
	f.Fuzz(func(t *testing.T, policy, body string) {
		filter, err := ParseFilter(policy, true)
		if err != nil {
			return
		}
		filter.MatchBody(body)
		filter.MatchAttributes(map[string]Attribute{"a": {"Number", body}, "b": {"String.Array", body}})
	})
}

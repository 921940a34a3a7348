package script

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatch(t *testing.T) {
	answer := `{"DB": {"Name": "one", "Port": 5432, "On": true, "Nothing": null, "Tags": [], "Log": "a\nready\nb",
		"Members": [{"Name": "w", "Writer": true}, {"Name": "r", "Writer": false}]}}`
	for _, tt := range []struct {
		name, want string
		values     map[string]any // that are known afterwards
		wrong      string         // part of the error
	}{
		{name: "nothing of an object", want: `{}`},
		{name: "texts, numbers and booleans", want: `{"DB": {"Name": "one", "Port": 5432, "On": true}}`},
		{name: "another text", want: `{"DB": {"Name": "two"}}`, wrong: `the answer.DB.Name is "one", not "two"`},
		{name: "another number", want: `{"DB": {"Port": 5433}}`, wrong: "Port is 5432"},
		{name: "another boolean", want: `{"DB": {"On": false}}`, wrong: "On is true"},
		{name: "a text that is a number", want: `{"DB": {"Port": "*"}}`},
		{name: "what is absent", want: `{"DB": {"Endpoint": null, "Nothing": null}}`},
		{name: "what should be absent", want: `{"DB": {"Name": null}}`, wrong: `not null`},
		{name: "what is not there", want: `{"DB": {"Endpoint": {"Address": "*"}}}`, wrong: "the answer.DB.Endpoint is null"},
		{name: "any text that is not there", want: `{"DB": {"Endpoint": "*"}}`, wrong: "Endpoint is null"},
		{name: "a value for nothing", want: `{"DB": {"Endpoint": "${at}"}}`, wrong: "Endpoint is null"},
		{name: "parts of a text", want: `{"DB": {"Log": "*ready*", "Name": "o*"}}`},
		{name: "an empty list", want: `{"DB": {"Tags": [], "Nothing": []}}`},
		{name: "an empty list that is not", want: `{"DB": {"Members": []}}`, wrong: "not []"},
		{name: "a list that is none", want: `{"DB": {"Name": []}}`, wrong: "not []"},
		{name: "items in any order", want: `{"DB": {"Members": [{"Name": "r"}, {"Name": "w"}]}}`},
		{name: "an item that is not there", want: `{"DB": {"Members": [{"Name": "r"}, {"Name": "x"}]}}`, wrong: "Members[1]"},
		{name: "a variable of an item", want: `{"DB": {"Members": [{"Writer": false, "Name": "${reader}"}]}}`, values: map[string]any{"reader": "r"}},
		{name: "one value for one variable", want: `{"DB": {"Members": [{"Name": "${a}", "Writer": true}, {"Name": "${a}", "Writer": false}]}}`, wrong: "Members[1]"},
		{name: "a number for a variable", want: `{"DB": {"Port": "${port}"}}`, values: map[string]any{"port": 5432.0}},
		{name: "a known value", want: `{"DB": {"Name": "${known}"}}`},
		{name: "a known value in a text, and a new one", want: `{"DB": {"Name": "o${rest}"}}`, values: map[string]any{"rest": "ne"}},
		{name: "a known value that differs", want: `{"DB": {"Log": "${known}"}}`, wrong: "Log is"},
		{name: "dots are dots", want: `{"DB": {"Name": "o.e"}}`, wrong: "Name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values := Variables{"known": "one"}
			err := values.match(decode(t, tt.want), decode(t, answer))
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("the error is %v, without %q", err, tt.wrong)
				}
				tt.values = nil
			} else if err != nil {
				t.Error(err)
			}
			want := Variables{"known": "one"}
			for name, value := range tt.values {
				want[name] = value
			}
			if diff := cmp.Diff(want, values); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFill(t *testing.T) {
	values := Variables{"name": "one", "port": 5432.0}
	got, err := values.fill(decode(t, `{"A": "${name}", "B": ["x${name}-${port}", "${port}"], "C": true}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, `{"A": "one", "B": ["xone-5432", 5432], "C": true}`), got); diff != "" {
		t.Errorf("filled (-want +got):\n%s", diff)
	}
	if _, err := values.fill([]any{"${none}"}); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a variable without a value: %v", err)
	}
}

// A long answer is cut in errors.
func TestDiffersIsShort(t *testing.T) {
	err := Variables{}.match("a", strings.Repeat("x", 10*longest))
	if err == nil || len(err.Error()) > 2*longest {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

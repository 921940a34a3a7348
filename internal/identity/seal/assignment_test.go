package seal

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"howdah/internal/model/member"
)

func sealer(t *testing.T, key string) *Assignments {
	t.Helper()
	s, err := NewAssignments([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func assignment() member.Assignment {
	a := member.Assignment{
		ID: "db-1.m2", Scope: "db-1", Name: "m2", Generation: 3, Want: member.Running, Address: "10.0.0.1", Port: 15432,
		Parameters: map[string]string{"search_path": "<a> & b", "work_mem": "4MB"}, Limits: member.Limits{CPUs: 0.5, MemoryBytes: 1 << 53},
	}
	a.Owner = member.Owner{Name: "app", Verifier: "SCRAM-SHA-256$…", Serial: 7}
	return a
}

func text(t *testing.T, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A seal is right for the host that was told, however the text was written since. It is right for
// nothing else.
func TestAnAssignmentIsKnownAgain(t *testing.T) {
	t.Parallel()
	s := sealer(t, "k")
	sealed, err := s.Seal("a", assignment())
	if err != nil {
		t.Fatal(err)
	}
	told := text(t, sealed)
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(told), &fields); err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(told, `{"id"`, `{"of_a_newer_release":[1e3,"x"],"id"`, 1)
	content, _, err := canonical([]byte(newer))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		host, text string
		right      bool
	}{
		"as it was told":                     {"a", told, true},
		"in another order":                   {"a", text(t, fields), true},
		"with spaces":                        {"a", strings.ReplaceAll(told, `,"`, ",\n \""), true},
		"without HTML's escapes":             {"a", strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(told), true},
		"with a field of a newer one":        {"a", strings.Replace(newer, sealed.Seal, s.of("a", content), 1), true},
		"… that was added since":             {"a", newer, false},
		"of another host":                    {"b", told, false},
		"of another generation":              {"a", strings.Replace(told, `"generation":3`, `"generation":4`, 1), false},
		"of another member":                  {"a", strings.ReplaceAll(told, "db-1", "db-2"), false},
		"with another password":              {"a", strings.Replace(told, `"serial":7`, `"serial":8`, 1), false},
		"with a field that was dropped":      {"a", strings.Replace(told, `"port":15432,`, "", 1), false},
		"with two of a field":                {"a", strings.Replace(told, `"seal"`, `"Want":"stopped","seal"`, 1), false},
		"without a seal":                     {"a", text(t, assignment()), false},
		"with a seal that is no text":        {"a", strings.Replace(told, `"`+sealed.Seal+`"`, "5", 1), false},
		"with another one behind it":         {"a", told + told, false},
		"no record":                          {"a", `["` + sealed.Seal + `"]`, false},
		"nothing":                            {"a", "null", false},
		"with an object that is there twice": {"a", strings.Replace(told, `"owner":{`, `"owner":{"database":"x"},"owner":{`, 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, right := s.Open(c.host, []byte(c.text))
			if right != c.right {
				t.Fatalf("right %v, want %v", right, c.right)
			}
			if right && !reflect.DeepEqual(got.Unsealed(), assignment()) {
				t.Errorf("it says %+v", got)
			}
		})
	}
	if _, right := sealer(t, "another home's").Open("a", []byte(told)); right {
		t.Error("it is another home's, too")
	}
}

// To seal the same again gives the same seal, so that nothing is written.
func TestASealStays(t *testing.T) {
	t.Parallel()
	s := sealer(t, "k")
	once, err := s.Seal("a", assignment())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Seal("a", once); err != nil || again.Seal != once.Seal {
		t.Errorf("%q, %v, want %q", again.Seal, err, once.Seal)
	}
}

package etcdgate

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestAreaHolds(t *testing.T) {
	own := area("/service/db-A/")
	for _, c := range []struct {
		key, end string
		want     bool
	}{
		{"/service/db-A/leader", "", true},
		{"/service/db-A/", "/service/db-A0", true},
		{"/service/db-A/members/", "/service/db-A/members0", true},
		{"/service/db-A/", "", true},
		{"/service/db-A", "", false},
		{"/service/db-A0", "", false},
		{"/service/db-AB/leader", "", false},
		{"/service/db-B/leader", "", false},
		{"/service/", "/service0", false},
		{"/service/db-A/", "/service/db-A1", false},
		{"/service/db-A/", "\x00", false},
		{"/service/db-A/x", "/service/db-A/a", false},
		{"/service/db-A/x", "/service/db-A/x", false},
		{"/service/db-A/../db-B/leader", "", true}, // etcd knows no paths
		{"", "", false},
		{"", "\x00", false},
		{"\x00", "\x00", false},
		{"/spec/x", "", false},
	} {
		if got := own.holds(keys{Key: []byte(c.key), RangeEnd: []byte(c.end)}); got != c.want {
			t.Errorf("%q to %q: %t", c.key, c.end, got)
		}
	}
}

func TestWhatIsNoneOfPatronisRequests(t *testing.T) {
	for name, c := range map[string]struct {
		into any
		text string
	}{
		"an unknown field":   {&rangeRequest{}, `{"key": "YQ==", "revision": 5}`},
		"no object":          {&rangeRequest{}, `["YQ=="]`},
		"two requests":       {&rangeRequest{}, `{"key": "YQ=="}{"key": "Yg=="}`},
		"no base64":          {&rangeRequest{}, `{"key": "%%"}`},
		"a lease of words":   {&keepAliveRequest{}, `{"ID": "one"}`},
		"a fraction":         {&keepAliveRequest{}, `{"ID": 1.5}`},
		"the previous value": {&putRequest{}, `{"key": "YQ==", "value": "YQ==", "prev_kv": true}`},
		"nothing":            {&putRequest{}, ``},
		"cancel of a watch":  {&watchRequest{}, `{"cancel_request": {"watch_id": 1}}`},
	} {
		if err := decode([]byte(c.text), c.into); !errors.Is(err, errForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{`{"success": [{}]}`, `{"success": [{"request_put": {"key": "YQ==", "value": ""}, "request_range": {"key": "Yg=="}}]}`} {
		var q txnRequest
		if err := decode([]byte(text), &q); err != nil {
			t.Fatal(err)
		}
		if _, err := q.needs(0); !errors.Is(err, errForm) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Whatever is let through has, in the form that is passed on, only keys of the member.
func FuzzTransaction(f *testing.F) {
	f.Add(`{"compare":[{"key":"L3NlcnZpY2UvZGItQS9sZWFkZXI=","target":"CREATE","create_revision":"0"}],"success":[{"request_put":{"key":"L3NlcnZpY2UvZGItQS9sZWFkZXI=","value":"bTE=","lease":"7"}}]}`)
	f.Add(`{"success":[{"request_delete_range":{"key":"L3NlcnZpY2UvZGItQS8=","range_end":"AA=="}}]}`)
	f.Add(`{"success":[{"request_range":{"KEY":"L3NwZWM=","key":"L3NlcnZpY2UvZGItQS8="}}]}`)
	f.Add(`{"failure":[{"request_txn":{"success":[{"request_put":{"key":"L3NlcnZpY2UvZGItQS9zeW5j","value":""}}]}}]}`)
	own, _ := rightsOf("db-A.m1")
	f.Fuzz(func(t *testing.T, text string) {
		var q txnRequest
		if decode([]byte(text), &q) != nil {
			return
		}
		all, err := q.needs(0)
		if err != nil {
			return
		}
		for _, n := range all {
			if !own.allows(n) {
				return
			}
		}
		passed, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		var read any
		if err := json.Unmarshal(passed, &read); err != nil {
			t.Fatal(err)
		}
		for _, k := range keysIn(read) {
			if !strings.HasPrefix(k.key, "/service/db-A/") && !strings.HasPrefix(k.key, "/howdah/") || k.end > "/service/db-A0" && strings.HasPrefix(k.key, "/service/") {
				t.Errorf("%s is passed on as %s", text, passed)
			}
		}
	})
}

type found struct{ key, end string }

// keysIn returns all that etcd would take for keys, wherever they are.
func keysIn(value any) (all []found) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			all = append(all, keysIn(e)...)
		}
	case map[string]any:
		text := func(name string) string {
			s, _ := v[name].(string)
			b, _ := base64.StdEncoding.DecodeString(s)
			return string(b)
		}
		if _, ok := v["key"]; ok {
			all = append(all, found{text("key"), text("range_end")})
		}
		for _, e := range v {
			all = append(all, keysIn(e)...)
		}
	}
	return all
}

func TestRights(t *testing.T) {
	r, ok := rightsOf("db-A.m1")
	if !ok {
		t.Fatal("no member")
	}
	for _, c := range []struct {
		key, end string
		deed     deed
		want     bool
	}{
		{"/service/db-A/leader", "", writes, true},
		{"/service/db-A/optime/leader", "", writes, true},
		{"/service/db-A/members/m1", "", writes, true},
		{"/service/db-A/members/db-A.m1", "", writes, true},
		{"/service/db-A/members/m2", "", writes, false},
		{"/service/db-A/members/", "", writes, false},
		{"/service/db-A/heap", "", writes, false},
		{"/service/db-A/leader", "/service/db-A/leader0", writes, false},
		{"/service/db-A/members/m2", "", deletes, true},
		{"/service/db-A/", "/service/db-A0", deletes, true},
		{"/howdah/passed/db-A", "", writes, true},
		{"/howdah/plea/db-A", "", deletes, true},
		{"/howdah/death/db-A/m1", "", deletes, true},
		{"/howdah/death/db-A/m1", "", writes, false},
		{"/howdah/death/db-A/m2", "", deletes, false},
		{"/howdah/death/db-A/", "/howdah/death/db-A0", reads, true},
		{"/howdah/death/db-A/", "/howdah/death/db-A0", deletes, false},
		{"/howdah/fence/db-A/", "/howdah/fence/db-A0", reads, true},
		{"/howdah/fence/db-A/m2", "", writes, false},
		{"/howdah/fence/db-B/", "/howdah/fence/db-B0", reads, false},
		{"/howdah/lead/db-A", "", reads, true},
		{"/howdah/lead/db-A", "/howdah/lead/db-B", reads, false},
		{"/howdah/layout/db-A", "", reads, true},
		{"/howdah/layout/db-A", "", writes, false},
		{"/howdah/layout/db-B", "", reads, false},
		{"/howdah/", "/howdah0", reads, false},
		{"/howdah/members-authority", "", reads, false},
	} {
		err := r.may(t.Context(), need{keys: keys{Key: []byte(c.key), RangeEnd: []byte(c.end)}, deed: c.deed})
		if (err == nil) != c.want {
			t.Errorf("deed %d on %q to %q: %v", c.deed, c.key, c.end, err)
		}
	}
}

func TestBudget(t *testing.T) {
	b := budget{limits: ofDatabase}
	spent := 0
	for b.spend("db-A", 64<<10) {
		if spent++; spent > 1000 {
			t.Fatal("there is no end")
		}
	}
	if spent < 16 || !b.spend("db-B", 64<<10) {
		t.Errorf("spent %d", spent)
	}
	var leaves []func()
	for range b.underWay {
		leave, ok := b.enter("db-A")
		if !ok {
			t.Fatal("too few")
		}
		leaves = append(leaves, leave)
	}
	if _, ok := b.enter("db-A"); ok {
		t.Error("too many")
	}
	if _, ok := b.enter("db-B"); !ok {
		t.Error("another one waits")
	}
	leaves[0]()
	if _, ok := b.enter("db-A"); !ok {
		t.Error("who has left counts")
	}
	refused := 0
	for range 4 * b.requestsEach {
		if leave, ok := b.enter("db-C"); ok {
			leave()
		} else {
			refused++
		}
	}
	if refused < b.requestsEach {
		t.Errorf("of %d requests at once %d were refused", 4*b.requestsEach, refused)
	}
	told := 0
	for range 1000 {
		if b.warns("db-C") {
			told++
		}
	}
	if told == 0 || told > 10 {
		t.Errorf("told %d times of one that goes on and on", told)
	}
}

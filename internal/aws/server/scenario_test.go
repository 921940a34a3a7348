package server

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"howdah/internal/aws/rds/catalogue"
	"howdah/internal/aws/wire/shape"
)

// scenario is one call and what it answers. Together they are the tests of the
// API, and its specification.
type scenario struct {
	name  string
	setup func(*user)
	// call is the action with its parameters, as in a query: "Action?A=b&C=d".
	call string
	// code is the error's; "" for success. Its status is that of the models.
	code    string
	message string // part of the error's
	// want are facts of the answer: "path=text", "path#count", "!path".
	want []string
	// after looks at what the call has done.
	after func(*user)
}

// run runs scenarios, each with an account of its own.
func (w *world) run(t *testing.T, all []scenario) {
	t.Helper()
	w.shift = toAfternoon()
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			u := w.user(t)
			if s.setup != nil {
				s.setup(u)
			}
			got := u.try(s.call)
			got.is(s.code, s.message)
			for _, fact := range s.want {
				got.has(u.fill(fact))
			}
			if s.after != nil {
				s.after(u)
			}
		})
	}
}

// answer is an answer of the API, already checked against the model.
type answer struct {
	*testing.T
	call   string
	status int
	root   *element
	code   string
	body   string
}

// try makes a call, in the notation of scenarios.
func (u *user) try(call string) *answer {
	u.Helper()
	call = u.fill(call)
	action, query, _ := strings.Cut(call, "?")
	if _, err := url.ParseQuery(query); err != nil {
		u.Fatalf("%s: %v", call, err)
	}
	service, action := serviceOf(action)
	form := "Action=" + action + "&Version=2014-10-31&" + strings.ReplaceAll(query, " ", "+")
	status, body := u.send(form, service, nil)
	return u.check(call, action, status, body)
}

// fill writes the user's account into a text.
func (u *user) fill(text string) string { return strings.ReplaceAll(text, "{account}", u.account) }

// done are the actions of each service of the query protocol, but for those that always answer
// an empty list.
var done = func() map[string][]string {
	all := map[string][]string{}
	empty := catalogue.Nothing(catalogue.Config{})
	for _, service := range nobodys().services() {
		if service.Contract != nil {
			all[service.Name] = slices.DeleteFunc(service.Does(), func(name string) bool {
				_, none := empty[name]
				return none && service.Name == "rds"
			})
		}
	}
	return all
}()

// serviceOf is the service of an action; where two have it, RDS's is meant unless
// it is written with its service, as sns:ListTagsForResource.
func serviceOf(name string) (service, action string) {
	if service, action, ok := strings.Cut(name, ":"); ok {
		return service, action
	}
	for _, service := range []string{"rds", "ec2", "sns", "sts"} {
		if slices.Contains(done[service], name) {
			return service, name
		}
	}
	return "rds", name
}

// check holds an answer against the model.
func (u *user) check(call, action string, status int, body []byte) *answer {
	u.Helper()
	a := &answer{T: u.T, call: call, status: status, body: string(body)}
	err := shape.CheckError(body)
	if status == http.StatusOK {
		err = shape.Check(action, body)
	}
	if err != nil {
		u.Errorf("%s: status %d: %v\n%s", call, status, err, body)
	}
	a.root = parseXML(u.T, body)
	if status != http.StatusOK {
		a.code = a.root.text("Error/Code") + a.root.text("Errors/Error/Code")
	}
	u.world.answered(action, status)
	if strings.Contains(a.body, marked) {
		u.Errorf("%s: the answer holds a password", call)
	}
	return a
}

// do makes a call that must succeed.
func (u *user) do(call string) *answer {
	u.Helper()
	a := u.try(call)
	a.is("", "")
	return a
}

// is checks the code and the message of an error, or success.
func (a *answer) is(code, message string) {
	a.Helper()
	if a.code != code || (code == "") != (a.status == http.StatusOK) {
		a.Fatalf("%s: answered %d %s, want %q\n%s", a.call, a.status, a.code, code, a.body)
	}
	told := a.root.text("Error/Message") + a.root.text("Errors/Error/Message")
	if code != "" && !strings.Contains(told, message) {
		a.Errorf("%s: the message %q has no %q", a.call, told, message)
	}
}

// result is where the output's members are.
func (a *answer) result() *element {
	for _, child := range a.root.children {
		if strings.HasSuffix(child.name, "Result") {
			return child
		}
	}
	return a.root
}

func (a *answer) text(path string) string { return a.result().text(path) }

// has checks facts: see scenario.want.
func (a *answer) has(facts ...string) {
	a.Helper()
	for _, fact := range facts {
		if err := a.result().holds(fact); err != nil {
			a.Errorf("%s: %v\n%s", a.call, err, a.body)
		}
	}
}

// element is an XML element.
type element struct {
	name     string
	content  string
	children []*element
}

func parseXML(t *testing.T, body []byte) *element {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(string(body)))
	root := &element{}
	open := []*element{root}
	for {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		top := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local}
			top.children = append(top.children, e)
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			top.content += string(token)
		}
	}
	if len(root.children) != 1 {
		t.Fatalf("the answer is no XML document: %s", body)
	}
	return root.children[0]
}

var segmentForm = regexp.MustCompile(`^([A-Za-z0-9]+)(?:\[(\d+)\])?$`)

// find are the elements at a path such as "A/B[2]/C"; without a number, all.
func (e *element) find(path string) []*element {
	found := []*element{e}
	for segment := range strings.SplitSeq(path, "/") {
		m := segmentForm.FindStringSubmatch(segment)
		if m == nil {
			panic("bad path " + path)
		}
		var next []*element
		for _, f := range found {
			for _, child := range f.children {
				if child.name == m[1] {
					next = append(next, child)
				}
			}
		}
		if m[2] != "" {
			n, _ := strconv.Atoi(m[2])
			if n > len(next) {
				return nil
			}
			next = next[n-1 : n]
		}
		found = next
	}
	return found
}

func (e *element) text(path string) string {
	found := e.find(path)
	if len(found) == 0 {
		return ""
	}
	return strings.TrimSpace(found[0].content)
}

func (e *element) texts(path string) []string {
	var all []string
	for _, f := range e.find(path) {
		all = append(all, strings.TrimSpace(f.content))
	}
	return all
}

func (e *element) holds(fact string) error {
	if path, absent := strings.CutPrefix(fact, "!"); absent {
		if found := e.find(path); len(found) > 0 {
			return fmt.Errorf("%s is there: %q", path, found[0].content)
		}
		return nil
	}
	if path, value, is := strings.Cut(fact, "="); is {
		found := e.find(path)
		if len(found) == 0 || strings.TrimSpace(found[0].content) != value {
			return fmt.Errorf("%s is %q, want %q", path, e.text(path), value)
		}
		return nil
	}
	path, count, _ := strings.Cut(fact, "#")
	if n, err := strconv.Atoi(count); err != nil || len(e.find(path)) != n {
		return fmt.Errorf("%d elements %s, want %s", len(e.find(path)), path, count)
	}
	return nil
}

// Package shape checks, in tests, that an answer on the wire is what the service
// models say. SDKs silently drop what they do not know, so a wrong name loses
// data without an error anywhere: the checker is strict where SDKs are lenient.
//
// Invariant: it shares no code with the encoder. It parses the document and
// compares it with the facts in package api, so a mistake of the encoder shows.
package shape

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"howdah/api"
	"howdah/internal/aws/wire"
)

// ErrDiffers means that a document is not what the model says.
var ErrDiffers = errors.New("the document differs from the model")

// Check checks the answer of an action. Its error lists every fault, a line
// each, with the path of the element.
func Check(action string, body []byte) error {
	root, err := parse(body)
	if err != nil {
		return fmt.Errorf("check the answer of %s: %w", action, err)
	}
	a, s := find(action, root.space)
	if a == nil {
		return fmt.Errorf("check the answer of %s: no service has this action: %w", action, ErrDiffers)
	}
	c := newChecker(s)
	c.document(root, action+"Response", s.XMLNS)
	if s.Protocol == api.EC2 {
		c.answerOfEC2(root, a)
		return c.result("the answer of " + action)
	}
	known := []string{"ResponseMetadata"}
	if a.Output != nil {
		known = append(known, a.Wrapper)
		if wrapper := c.only(root, a.Wrapper); wrapper != nil {
			c.output(wrapper, a.Output())
		}
	}
	c.container(root, known...)
	if metadata := c.only(root, "ResponseMetadata"); metadata != nil {
		c.container(metadata, "RequestId")
		c.filled(metadata, "RequestId")
	}
	return c.result("the answer of " + action)
}

// CheckError checks an error document: its form, that a model or the common
// errors have its code, and that its type fits the code's status.
func CheckError(body []byte) error {
	root, err := parse(body)
	if err != nil {
		return fmt.Errorf("check an error document: %w", err)
	}
	c := newChecker(nil)
	if root.name == "Response" {
		c.errorOfEC2(root)
		return c.result("an error document")
	}
	c.document(root, "ErrorResponse", root.space)
	if !knownNamespace(root.space) {
		c.fault(root, "has the unknown namespace %q", root.space)
	}
	c.container(root, "Error", "RequestId")
	c.filled(root, "RequestId")
	if e := c.only(root, "Error"); e != nil {
		c.container(e, "Type", "Code", "Message", "Hint")
		c.filled(e, "Message")
		c.code(e, c.filled(e, "Code"), c.filled(e, "Type"))
	}
	return c.result("an error document")
}

// find returns the action of that name, of the service whose namespace it is if
// several services have one.
func find(action, namespace string) (found *api.Action, service *api.Service) {
	for _, s := range wire.Services() {
		if a, ok := s.Action(action); ok && (found == nil || s.XMLNS == namespace) {
			found, service = a, s
		}
	}
	return found, service
}

func knownNamespace(namespace string) bool {
	for _, s := range wire.Services() {
		if s.XMLNS == namespace {
			return true
		}
	}
	return false
}

func statusOf(code string) (int, bool) {
	if status, ok := api.CommonErrors[code]; ok {
		return status, true
	}
	for _, s := range wire.Services() {
		if status, ok := s.Errors[code]; ok {
			return status, true
		}
	}
	return 0, false
}

// checker collects the faults of one document.
type checker struct {
	service *api.Service
	facts   map[reflect.Type]map[string]fact
	faults  []string
}

func newChecker(s *api.Service) *checker {
	return &checker{service: s, facts: map[reflect.Type]map[string]fact{}}
}

func (c *checker) fault(n *node, format string, args ...any) {
	c.faults = append(c.faults, n.path()+" "+fmt.Sprintf(format, args...))
}

func (c *checker) result(what string) error {
	if c.faults == nil {
		return nil
	}
	return fmt.Errorf("check %s: %w:\n%s", what, ErrDiffers, strings.Join(c.faults, "\n"))
}

// document checks what holds for every document: the root's name and namespace,
// and that nothing below has attributes or another namespace.
func (c *checker) document(root *node, name, namespace string) {
	if root.name != name {
		c.fault(root, "should be %s", name)
	}
	if root.space != namespace {
		c.fault(root, "has the namespace %q, not %q", root.space, namespace)
	}
	for _, attribute := range root.attributes {
		if attribute != "xmlns" {
			c.fault(root, "has the attribute %s", attribute)
		}
	}
	c.plain(root)
}

func (c *checker) plain(n *node) {
	for _, child := range n.children {
		for _, attribute := range child.attributes {
			c.fault(child, "has the attribute %s", attribute)
		}
		if child.space != n.space {
			c.fault(child, "has the namespace %q", child.space)
		}
		c.plain(child)
	}
}

// container checks that an element has no text and no children but the known.
func (c *checker) container(n *node, known ...string) {
	c.noText(n)
	for _, child := range n.children {
		if !slices.Contains(known, child.name) {
			c.fault(child, "is unknown")
		}
	}
}

func (c *checker) noText(n *node) {
	if strings.TrimSpace(n.text()) != "" {
		c.fault(n, "has the text %q", n.text())
	}
}

// only returns the one child of that name; it is a fault to have none or more.
func (c *checker) only(n *node, name string) *node {
	var found *node
	for _, child := range n.children {
		if child.name != name {
			continue
		}
		if found != nil {
			c.fault(child, "is there twice")
		}
		found = child
	}
	if found == nil {
		c.fault(n, "lacks the element %s", name)
	}
	return found
}

// filled returns the text of the one child of that name, which must not be empty.
func (c *checker) filled(n *node, name string) string {
	child := c.only(n, name)
	if child == nil {
		return ""
	}
	if c.leaf(child); child.text() == "" {
		c.fault(child, "is empty")
	}
	return child.text()
}

func (c *checker) leaf(n *node) {
	for _, child := range n.children {
		c.fault(child, "is inside a value")
	}
}

func (c *checker) code(n *node, code, kind string) {
	status, known := statusOf(code)
	if !known {
		c.fault(n, "has the code %q, which no model has", code)
		return
	}
	want := "Sender"
	if status >= http.StatusInternalServerError {
		want = "Receiver"
	}
	if kind != want {
		c.fault(n, "has the type %q, not %q", kind, want)
	}
}

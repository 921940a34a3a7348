package shape

import (
	"slices"

	"howdah/api"
)

// answerOfEC2 checks an answer in EC2's protocol: the members of the output stand in
// the root, beside the request's id.
func (c *checker) answerOfEC2(root *node, a *api.Action) {
	c.filled(root, "requestId")
	rest := *root
	rest.children = slices.DeleteFunc(slices.Clone(root.children), func(n *node) bool { return n.name == "requestId" })
	if a.Output == nil {
		c.container(&rest)
		return
	}
	c.output(&rest, a.Output())
}

// errorOfEC2 checks an error document of EC2, which has no namespace.
func (c *checker) errorOfEC2(root *node) {
	c.document(root, "Response", "")
	c.container(root, "Errors", "RequestID")
	c.filled(root, "RequestID")
	list := c.only(root, "Errors")
	if list == nil {
		return
	}
	c.container(list, "Error")
	if e := c.only(list, "Error"); e != nil {
		c.container(e, "Code", "Message")
		c.filled(e, "Message")
		if code := c.filled(e, "Code"); code != "" {
			if _, known := statusOf(code); !known {
				c.fault(e, "has the code %q, which no model has", code)
			}
		}
	}
}

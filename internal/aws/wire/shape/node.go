package shape

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxDepth is far below what any model nests; it bounds the checker's recursion.
const maxDepth = 64

// node is one element of a document.
type node struct {
	parent     *node
	number     int // among its parent's children, from 1
	name       string
	space      string
	attributes []string
	content    []byte
	children   []*node
}

// path names the element from the root, numbering it among its siblings.
func (n *node) path() string {
	if n.parent == nil {
		return n.name
	}
	return n.parent.path() + "/" + n.name + "[" + strconv.Itoa(n.number) + "]"
}

// text returns the element's own text.
func (n *node) text() string { return string(n.content) }

// parse reads a document of elements and text; anything else that XML allows is
// refused, but for a declaration in front.
func parse(body []byte) (*node, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	root, current, depth := (*node)(nil), (*node)(nil), 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && root != nil && current == nil {
			return root, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDiffers, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth || root != nil && current == nil {
				return nil, fmt.Errorf("%w: element %s is too deep or behind the end", ErrDiffers, t.Name.Local)
			}
			current = newNode(current, t)
			if root == nil {
				root = current
			}
		case xml.EndElement:
			depth--
			current = current.parent
		default:
			if err := other(d, current, token); err != nil {
				return nil, err
			}
		}
	}
}

func newNode(parent *node, t xml.StartElement) *node {
	n := &node{parent: parent, name: t.Name.Local, space: t.Name.Space}
	for _, a := range t.Attr {
		name := a.Name.Local
		if a.Name.Space != "" {
			name = a.Name.Space + ":" + name
		}
		n.attributes = append(n.attributes, name)
	}
	if parent != nil {
		parent.children = append(parent.children, n)
		n.number = len(parent.children)
	}
	return n
}

// other handles what is no element.
func other(d *xml.Decoder, current *node, token xml.Token) error {
	switch t := token.(type) {
	case xml.CharData:
		if current != nil {
			current.content = append(current.content, t...)
			return nil
		}
		if strings.TrimSpace(string(t)) == "" {
			return nil
		}
	case xml.ProcInst:
		if t.Target == "xml" && d.InputOffset() == int64(len("<?xml ")+len(t.Inst)+len("?>")) {
			return nil
		}
	}
	return fmt.Errorf("%w: %T before byte %d", ErrDiffers, token, d.InputOffset())
}

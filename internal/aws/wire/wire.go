// Package wire turns what clients of the AWS Query protocol send into the
// generated structures of package api, and those structures into what clients
// expect: parameters, XML documents and error documents, in both directions.
// Sub-package sigv4 proves who sent a request; shape checks answers in tests.
//
// Invariants: nothing here knows what an action does. The generated struct tags
// are the only source of names. A request, however hostile, costs memory and
// time in proportion to its size. What a client got wrong comes back as *Error;
// any other error is a mistake of ours or of the transport.
package wire

// ContentType is the media type of every document that this package encodes.
const ContentType = "text/xml"

// The bounds on a request's size once parsed. Real requests stay far below: the
// largest list of the RDS model takes 200 elements.
const (
	maxParameters = 10_000
	maxElements   = 1_000
	maxDepth      = 16
)

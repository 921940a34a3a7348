package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/aws/audit"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
)

// secretWords mark members of admin requests that are not to be shown, if there should ever be one.
var secretWords = []string{"secret", "password", "token"}

// maxName is how many bytes are kept of a name that nobody knows.
const maxName = 128

// asks writes a verb with its request into the record of the call.
func (s *Server) asks(r *front.Record, name string, body []byte) {
	r.Service, r.Action = admin.Service, name[:min(len(name), maxName)]
	var members map[string]any
	if _, known := s.verbs[name]; !known || json.Unmarshal(body, &members) != nil {
		return
	}
	r.Parameters = map[string]string{}
	for name, value := range members {
		text := fmt.Sprint(value)
		if slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(strings.ToLower(name), w) }) {
			text = wire.Masked
		}
		r.Parameters[name[:min(len(name), maxName)]] = text[:min(len(text), audit.MaxText)]
	}
}

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

// adminAction is the action that a verb counts as in policies: "drain" is
// howdah:Drain, "forget-host" howdah:ForgetHost.
func adminAction(verb string) string {
	var name strings.Builder
	for word := range strings.SplitSeq(verb, "-") {
		if word != "" {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return name.String()
}

// authorizeAdmin refuses a verb that the caller may not use. Verbs show and change
// the whole home, but for one that looks at databases of the caller's account: keys
// of other accounts than the home's may use only that.
func (s *Server) authorizeAdmin(c front.Call) error {
	if !c.Who.OfHome && c.Account != s.Home.Account && c.Action != "howdah:Database" {
		return c.Denied("*", "because the account "+c.Account+" is not that of the home")
	}
	if len(c.Who.Policies) > 0 && (c.Action == "howdah:KeyCreate" || c.Action == "howdah:KeyDelete") {
		return c.Denied("*", "because a limited access key could make one without its limits")
	}
	return c.May("*", c.Context(nil), true)
}

// secretWords mark members of admin requests that are not to be shown, should there
// ever be one.
var secretWords = []string{"secret", "password", "token"}

// maxName is how many bytes are kept of a name that nobody knows.
const maxName = 128

// asksAdmin notes a verb of the admin API with its request in the record of the call.
func asksAdmin(r *front.Record, verb string, body []byte) {
	r.Service, r.Action = admin.Service, verb[:min(len(verb), maxName)]
	var members map[string]any
	if _, known := adminVerbs[verb]; !known || json.Unmarshal(body, &members) != nil {
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

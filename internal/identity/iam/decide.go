package iam

// Request is one action on one resource that somebody asks for.
type Request struct {
	Action   string // "rds:DeleteDBInstance"
	Resource string // ARN; "*" where the action has no resource
	// AnyCase says that names which differ only in case are names of one resource. Then the case of
	// names in policies does not count either.
	AnyCase bool
	// Context has the values of condition keys, by name. A name with a variable part, such as
	// aws:RequestTag/team, counts with any case before the slash.
	Context map[string][]string
	// Blind says that nobody could find out what the resource is like: values of OfResource that
	// Context lacks may be any. Then a statement that denies by them denies, and one that allows by
	// them does not allow.
	Blind bool
}

// Decision is the answer to a request.
type Decision int

// The decisions. The zero value is the decision of a policy that says nothing.
const (
	NotAllowed Decision = iota
	Allowed
	Denied // by a statement that says so
)

// Decide answers a request by the statements that apply to it.
func (p *Policy) Decide(r Request) Decision {
	context := normal(r.Context)
	decision := NotAllowed
	for _, s := range p.statements {
		if !s.actions.matchAction(r.Action) || !s.resources.matchResource(r.Resource, r.AnyCase) || !s.holds(context, r.Blind) {
			continue
		}
		if s.deny {
			return Denied
		}
		decision = Allowed
	}
	return decision
}

func (s statement) holds(context map[string][]string, blind bool) bool {
	for _, c := range s.conditions {
		holds := c.holds(context)
		if blind && c.unknown(context) {
			holds = s.deny
		}
		if !holds {
			return false
		}
	}
	return true
}

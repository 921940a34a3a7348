package iam

// Request is one thing that somebody wants to do to one resource.
type Request struct {
	Action   string // "rds:DeleteDBInstance"
	Resource string // ARN; "*" where the action has no resource
	// AnyCase says that names which differ only in case are names of one resource: then
	// the case of names in policies does not count either.
	AnyCase bool
	// Context are the values of condition keys, by name. Names with a variable part,
	// such as aws:RequestTag/team, count with any case before the slash.
	Context map[string][]string
}

// Decision is the answer to a request.
type Decision int

// The decisions. The zero value is that of a policy that says nothing.
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
		if !s.actions.matchAction(r.Action) || !s.resources.matchResource(r.Resource, r.AnyCase) || !s.holds(context) {
			continue
		}
		if s.deny {
			return Denied
		}
		decision = Allowed
	}
	return decision
}

func (s statement) holds(context map[string][]string) bool {
	for _, c := range s.conditions {
		if !c.holds(context) {
			return false
		}
	}
	return true
}

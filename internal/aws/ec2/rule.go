package ec2

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/ec2"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/network"
	"howdah/internal/state"
)

// authorizeIngress adds rules to a group, all or none.
func (s *service) authorizeIngress(ctx context.Context, c front.Call, in *ec2.AuthorizeSecurityGroupIngressRequest) (*ec2.AuthorizeSecurityGroupIngressResult, error) {
	tags, err := tagsIn(in.TagSpecifications, "security-group-rule")
	if err != nil {
		return nil, err
	}
	if len(tags) > 0 {
		return nil, wire.NewError(ec2.ErrUnsupportedOperation, "Tags of rules are not available: tag the group.")
	}
	rules, err := askedRules(asked{
		permissions: in.IpPermissions, cidr: in.CidrIp, protocol: in.IpProtocol, from: in.FromPort, to: in.ToPort,
		group: in.SourceSecurityGroupName, owner: in.SourceSecurityGroupOwnerId,
	})
	if err != nil {
		return nil, err
	}
	var changed network.Group
	err = s.changeRules(ctx, c, in.GroupId, in.GroupName, func(g *network.Group) error {
		for _, r := range rules {
			if slices.ContainsFunc(g.Rules, r.Same) {
				return wire.NewError(ec2.ErrInvalidPermissionDuplicate, "the specified rule \"%s\" already exists", ruleText(r))
			}
			g.Rules = append(g.Rules, r)
		}
		if len(g.Rules) > maxRules {
			return wire.NewError(ec2.ErrRulesPerSecurityGroupLimit, "The maximum number of rules per security group has been reached: %d.", maxRules)
		}
		changed = *g
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &ec2.AuthorizeSecurityGroupIngressResult{Return: wire.Some(true), SecurityGroupRules: []ec2.SecurityGroupRule{}}
	for _, r := range rules {
		out.SecurityGroupRules = append(out.SecurityGroupRules, ruleOut(changed, r))
	}
	return out, nil
}

// revokeIngress removes rules from a group, by what they say or by their ids. It removes all or
// none.
func (s *service) revokeIngress(ctx context.Context, c front.Call, in *ec2.RevokeSecurityGroupIngressRequest) (*ec2.RevokeSecurityGroupIngressResult, error) {
	wanted := asked{
		permissions: in.IpPermissions, cidr: in.CidrIp, protocol: in.IpProtocol, from: in.FromPort, to: in.ToPort,
		group: in.SourceSecurityGroupName, owner: in.SourceSecurityGroupOwnerId,
	}
	var rules []network.Rule
	var err error
	if len(in.SecurityGroupRuleIds) == 0 {
		rules, err = askedRules(wanted)
	} else if wanted.flat() || len(in.IpPermissions) > 0 {
		err = wire.NewError(api.ErrInvalidParameterCombination, "The parameter SecurityGroupRuleIds cannot be used with rules.")
	}
	if err != nil {
		return nil, err
	}
	out := &ec2.RevokeSecurityGroupIngressResult{Return: wire.Some(true), UnknownIpPermissions: []ec2.IpPermission{}}
	err = s.changeRules(ctx, c, in.GroupId, in.GroupName, func(g *network.Group) error {
		out.RevokedSecurityGroupRules = []ec2.RevokedSecurityGroupRule{}
		remove := func(is func(network.Rule) bool, otherwise error) error {
			n := slices.IndexFunc(g.Rules, is)
			if n < 0 {
				return otherwise
			}
			out.RevokedSecurityGroupRules = append(out.RevokedSecurityGroupRules, revokedOut(*g, g.Rules[n]))
			g.Rules = slices.Delete(g.Rules, n, n+1)
			return nil
		}
		for _, id := range in.SecurityGroupRuleIds {
			if err := remove(func(r network.Rule) bool { return r.ID == id }, noRule(id)); err != nil {
				return err
			}
		}
		for _, r := range rules {
			missing := wire.NewError(ec2.ErrInvalidPermissionNotFound, "The specified rule does not exist in this security group: %s.", ruleText(r))
			if err := remove(r.Same, missing); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func noRule(id string) error {
	if !strings.HasPrefix(id, "sgr-") {
		return wire.NewError(ec2.ErrInvalidSecurityGroupRuleMalformed, "Invalid id: \"%s\" (expecting \"sgr-...\" as SecurityGroupRuleId)", id)
	}
	return wire.NewError(ec2.ErrInvalidSecurityGroupRuleID, "The security group rule ID '%s' does not exist", id)
}

// changeRules changes a group's record.
func (s *service) changeRules(ctx context.Context, c front.Call, id, name *string, change func(*network.Group) error) error {
	return s.Retry(ctx, func() error {
		r, err := s.findSecurityGroup(c.Scope, id, name)
		if err != nil {
			return err
		}
		g := r.Value
		g.Rules = slices.Clone(g.Rules)
		if err := change(&g); err != nil {
			return err
		}
		g.Generation++
		return s.Commit(ctx, state.Swap(r.Key, r.Revision, g))
	})
}

// asked has the two forms in which a request can give rules.
type asked struct {
	permissions    []ec2.IpPermission
	cidr, protocol *string
	from, to       *int32
	group, owner   *string
}

func (a asked) flat() bool {
	return a.cidr != nil || a.protocol != nil || a.from != nil || a.to != nil || a.group != nil || a.owner != nil
}

// askedRules returns the rules that a request asks for, each with a new id.
func askedRules(a asked) ([]network.Rule, error) {
	switch {
	case a.flat() && len(a.permissions) > 0:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "The parameter IpPermissions cannot be used with CidrIp, IpProtocol, FromPort, ToPort, SourceSecurityGroupName and SourceSecurityGroupOwnerId.")
	case a.group != nil || a.owner != nil:
		return nil, noSourceGroups("SourceSecurityGroupName")
	case a.flat() && a.cidr == nil:
		return nil, wire.NewError(api.ErrMissingParameter, "The request must contain the parameter CidrIp.")
	case a.flat():
		a.permissions = []ec2.IpPermission{{IpProtocol: a.protocol, FromPort: a.from, ToPort: a.to, IpRanges: []ec2.IpRange{{CidrIp: a.cidr}}}}
	case len(a.permissions) == 0:
		return nil, wire.NewError(api.ErrMissingParameter, "The request must contain the parameter IpPermissions, or CidrIp with IpProtocol, FromPort and ToPort.")
	}
	var rules []network.Rule
	for _, p := range a.permissions {
		more, err := rulesOf(p)
		if err != nil {
			return nil, err
		}
		for _, r := range more {
			if slices.ContainsFunc(rules, r.Same) {
				return nil, wire.NewError(api.ErrInvalidParameterValue, "The same permission must not appear multiple times: %s", ruleText(r))
			}
			rules = append(rules, r)
		}
	}
	return rules, nil
}

func noSourceGroups(parameter string) error {
	return wire.NewError(ec2.ErrUnsupportedOperation,
		"The parameter %s is not available: a home does not know the addresses of who is in a group. Name the network of the clients by CidrIp.", parameter)
}

// rulesOf splits a permission into one rule for each network.
func rulesOf(p ec2.IpPermission) ([]network.Rule, error) {
	switch {
	case len(p.UserIdGroupPairs) > 0:
		return nil, noSourceGroups("UserIdGroupPairs")
	case len(p.PrefixListIds) > 0:
		return nil, wire.NewError(ec2.ErrUnsupportedOperation, "The parameter PrefixListIds of IpPermissions is not available: name the networks by CidrIp.")
	case len(p.Ipv6Ranges) > 0:
		return nil, noIPv6(wire.Or(p.Ipv6Ranges[0].CidrIpv6, ""))
	case len(p.IpRanges) == 0:
		return nil, wire.NewError(api.ErrMissingParameter, "The request must contain the parameter IpRanges: each permission needs a CidrIp.")
	}
	base, err := portsOf(p)
	if err != nil {
		return nil, err
	}
	var rules []network.Rule
	for _, r := range p.IpRanges {
		rule := base
		rule.ID, rule.Description = "sgr-"+newID(), wire.Or(r.Description, "")
		if rule.Description != "" {
			if err := checkGroupText("Description", rule.Description); err != nil {
				return nil, err
			}
		}
		if rule.Source, err = sourceOfRule(wire.Or(r.CidrIp, "")); err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func noIPv6(text string) error {
	return wire.NewError(ec2.ErrUnsupportedOperation, "The CIDR block %s in IpPermissions is not available: databases have IPv4 addresses only.", text)
}

// sourceOfRule returns the network of a rule. Bits of hosts do not count, as on EC2.
func sourceOfRule(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, wire.NewError(api.ErrInvalidParameterValue, "CIDR block %s is malformed: the parameter CidrIp must be like 10.0.0.0/16 or 203.0.113.5/32.", text)
	}
	if !p.Addr().Is4() {
		return p, noIPv6(text)
	}
	return p.Masked(), nil
}

// protocols has the names of protocols that have one, by number.
var protocols = map[string]string{"6": network.TCP, "17": "udp", "1": "icmp", "58": "icmpv6", "all": network.AnyProtocol}

// portsOf reads the protocol and the ports of a permission.
func portsOf(p ec2.IpPermission) (network.Rule, error) {
	protocol := strings.ToLower(wire.Or(p.IpProtocol, ""))
	if name, ok := protocols[protocol]; ok {
		protocol = name
	}
	none := network.Rule{Protocol: protocol, From: -1, To: -1}
	switch protocol {
	case "":
		return none, wire.NewError(api.ErrMissingParameter, "The request must contain the parameter IpProtocol.")
	case network.AnyProtocol:
		return none, nil
	case network.TCP, "udp":
		return portRange(protocol, p.FromPort, p.ToPort)
	case "icmp":
		return network.Rule{Protocol: protocol, From: int(wire.Or(p.FromPort, -1)), To: int(wire.Or(p.ToPort, -1))}, nil
	case "icmpv6":
		return none, noIPv6("of icmpv6")
	}
	if n, err := strconv.Atoi(protocol); err != nil || n < 0 || n > 255 {
		return none, wire.NewError(api.ErrInvalidParameterValue, "Invalid value '%s' for IP protocol. Unknown protocol.", protocol)
	}
	return none, nil
}

func portRange(protocol string, from, to *int32) (network.Rule, error) {
	r := network.Rule{Protocol: protocol, From: int(wire.Or(from, -1)), To: int(wire.Or(to, -1))}
	switch {
	case from == nil || to == nil:
		return r, wire.NewError(api.ErrMissingParameter, "The request must contain the parameters FromPort and ToPort for the protocol %s.", protocol)
	case r.From < 0 || r.From > 65535 || r.To < 0 || r.To > 65535:
		return r, wire.NewError(api.ErrInvalidParameterValue, "Invalid value '%d' - '%d' for FromPort and ToPort: ports are from 0 to 65535.", r.From, r.To)
	case r.From > r.To:
		return r, wire.NewError(api.ErrInvalidParameterValue, "Invalid %s port range (%d,%d): FromPort must not be above ToPort.", strings.ToUpper(protocol), r.From, r.To)
	}
	return r, nil
}

// ruleText returns a rule in EC2's words.
func ruleText(r network.Rule) string {
	if r.Protocol == network.AnyProtocol {
		return "peer: " + r.Source.String() + ", ALL, ALLOW"
	}
	return "peer: " + r.Source.String() + ", " + strings.ToUpper(r.Protocol) + ", from port: " + strconv.Itoa(r.From) + ", to port: " + strconv.Itoa(r.To) + ", ALLOW"
}

func ruleOut(g network.Group, r network.Rule) ec2.SecurityGroupRule {
	return ec2.SecurityGroupRule{
		SecurityGroupRuleId: wire.Some(r.ID), GroupId: wire.Some(g.ID), GroupOwnerId: wire.Some(g.Account), IsEgress: wire.Some(false), IpProtocol: wire.Some(r.Protocol),
		FromPort: wire.Number(r.From), ToPort: wire.Number(r.To), CidrIpv4: wire.Some(r.Source.String()), Description: wire.Text(r.Description), Tags: []ec2.Tag{},
		SecurityGroupRuleArn: wire.Some(network.ARN(g.Scope, "security-group-rule", r.ID)),
	}
}

func revokedOut(g network.Group, r network.Rule) ec2.RevokedSecurityGroupRule {
	return ec2.RevokedSecurityGroupRule{
		SecurityGroupRuleId: wire.Some(r.ID), GroupId: wire.Some(g.ID), IsEgress: wire.Some(false), IpProtocol: wire.Some(r.Protocol),
		FromPort: wire.Number(r.From), ToPort: wire.Number(r.To), CidrIpv4: wire.Some(r.Source.String()), Description: wire.Text(r.Description),
	}
}

// describeSecurityGroupRules lists rules of all groups of the caller's region.
func (s *service) describeSecurityGroupRules(ctx context.Context, c front.Call, in *ec2.DescribeSecurityGroupRulesRequest) (*ec2.DescribeSecurityGroupRulesResult, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	conditions, err := readFilters(in.Filters, "group-id", "security-group-rule-id", "tag:", "tag-key")
	if err != nil {
		return nil, err
	}
	var all []ec2.SecurityGroupRule
	found := map[string]bool{}
	for _, g := range s.book(c.Scope).In(c.Scope) {
		for _, r := range g.Rules {
			found[r.ID] = true
			named := len(in.SecurityGroupRuleIds) == 0 || slices.Contains(in.SecurityGroupRuleIds, r.ID)
			if named && conditions.match(map[string][]string{"group-id": {g.ID}, "security-group-rule-id": {r.ID}}) {
				all = append(all, ruleOut(g, r))
			}
		}
	}
	named := ""
	for _, id := range in.SecurityGroupRuleIds {
		if named = "SecurityGroupRuleIds"; !found[id] {
			return nil, noRule(id)
		}
	}
	slices.SortFunc(all, func(a, b ec2.SecurityGroupRule) int {
		return strings.Compare(*a.SecurityGroupRuleId, *b.SecurityGroupRuleId)
	})
	chosen, token, err := pageOf(all, func(r ec2.SecurityGroupRule) string { return *r.SecurityGroupRuleId }, in.MaxResults, in.NextToken, named)
	return &ec2.DescribeSecurityGroupRulesResult{SecurityGroupRules: chosen, NextToken: token}, err
}

package ec2

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/ec2"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/network"
	"howdah/internal/model/network/cidr"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// maxSecurityGroups bounds the groups of an account in a region, and maxRules the rules of a group.
const (
	maxSecurityGroups = 2500
	maxRules          = 60
)

var (
	groupIDForm   = regexp.MustCompile(`^sg-[a-z0-9]{1,40}$`)
	groupNameForm = regexp.MustCompile(`^[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{1,255}$`)
)

func keyOf(g network.Group) string {
	return state.SecurityGroup(g.Account, g.Region, g.ID)
}

// groups returns the groups of a scope that were made or changed, by id.
func (s *service) groups(scope spec.Scope) []state.Record[network.Group] {
	return state.LoadAll[network.Group](s.Cache, state.SecurityGroup(scope.Account, scope.Region, ""))
}

// book returns the groups of a scope, the default one included.
func (s *service) book(scope spec.Scope) network.Book {
	var all []network.Group
	for _, r := range s.groups(scope) {
		all = append(all, r.Value)
	}
	return network.NewBook(all)
}

// findSecurityGroup finds a group by its id, or by its name if no id is given. If a default group
// was never changed, its revision is 0.
func (s *service) findSecurityGroup(scope spec.Scope, id, name *string) (state.Record[network.Group], error) {
	var none state.Record[network.Group]
	if id == nil && name == nil {
		return none, wire.NewError(api.ErrMissingParameter, "The request must contain the parameter GroupId or GroupName.")
	}
	var g network.Group
	var err error
	if id != nil {
		g, err = s.groupWith(scope, *id)
	} else {
		g, err = s.groupNamed(scope, *name)
	}
	if err != nil {
		return none, err
	}
	if r, err := state.Load[network.Group](s.Cache, keyOf(g)); err == nil {
		return r, nil
	}
	return state.Record[network.Group]{Key: keyOf(g), Value: g}, nil
}

func (s *service) groupWith(scope spec.Scope, id string) (network.Group, error) {
	if !groupIDForm.MatchString(id) {
		return network.Group{}, wire.NewError(ec2.ErrInvalidGroupIDMalformed, "Invalid id: \"%s\" (expecting \"sg-...\" as GroupId)", id)
	}
	g, ok := s.book(scope).Find(scope, id)
	if !ok {
		return network.Group{}, wire.NewError(ec2.ErrInvalidGroupNotFound, "The security group '%s' does not exist", id)
	}
	return g, nil
}

func (s *service) groupNamed(scope spec.Scope, name string) (network.Group, error) {
	for _, g := range s.book(scope).In(scope) {
		if g.Name == name {
			return g, nil
		}
	}
	if name == "" {
		return network.Group{}, front.Blank("GroupName")
	}
	return network.Group{}, wire.NewError(ec2.ErrInvalidGroupNotFound, "The security group '%s' does not exist in default VPC '%s'", name, network.VPC)
}

// createSecurityGroup makes a group that lets nobody in yet.
func (s *service) createSecurityGroup(ctx context.Context, c front.Call, in *ec2.CreateSecurityGroupRequest) (*ec2.CreateSecurityGroupResult, error) {
	tags, err := tagsIn(in.TagSpecifications, "security-group")
	if err != nil {
		return nil, err
	}
	g := network.Group{
		Scope: c.Scope, ID: "sg-" + newID(), Name: wire.Or(in.GroupName, ""), Description: wire.Or(in.Description, ""),
		Rules: []network.Rule{}, Tags: tags, Created: c.Now, Generation: 1,
	}
	if err := checkVPC(in.VpcId); err != nil {
		return nil, err
	}
	if err := checkGroupName(g.Name); err != nil {
		return nil, err
	}
	if err := checkGroupText("GroupDescription", g.Description); err != nil {
		return nil, err
	}
	err = s.Retry(ctx, func() error {
		if _, err := s.groupNamed(c.Scope, g.Name); err == nil {
			return wire.NewError(ec2.ErrInvalidGroupDuplicate, "The security group '%s' already exists for VPC '%s'", g.Name, network.VPC)
		}
		if len(s.groups(c.Scope)) >= maxSecurityGroups {
			return wire.NewError(ec2.ErrSecurityGroupLimit, "The maximum number of security groups has been reached: %d.", maxSecurityGroups)
		}
		return s.Commit(ctx, state.Swap(keyOf(g), 0, g))
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateSecurityGroupResult{GroupId: wire.Some(g.ID), Tags: tagsOut(g.Tags), SecurityGroupArn: wire.Some(g.ARN())}, nil
}

// newID returns the part of a new id after its prefix.
func newID() string {
	var b [9]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("ec2: no randomness: " + err.Error())
	}
	return hex.EncodeToString(b[:])[:17]
}

func checkGroupName(name string) error {
	switch {
	case name == network.DefaultName:
		return wire.NewError(ec2.ErrInvalidGroupReserved, "The security group '%s' is reserved", name)
	case strings.HasPrefix(name, "sg-"):
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid value '%s' for groupName. Group names may not be in the format sg-*.", name)
	}
	return checkGroupText("GroupName", name)
}

func checkGroupText(what, text string) error {
	if !groupNameForm.MatchString(text) {
		return wire.NewError(api.ErrInvalidParameterValue,
			"Invalid value '%s' for %s: it must have 1 to 255 of a-z, A-Z, 0-9, spaces and ._-:/()#,@[]+=&;{}!$*.", text, what)
	}
	return nil
}

// deleteSecurityGroup deletes a group that no database is in.
func (s *service) deleteSecurityGroup(ctx context.Context, c front.Call, in *ec2.DeleteSecurityGroupRequest) (*ec2.DeleteSecurityGroupResult, error) {
	var id string
	err := s.Retry(ctx, func() error {
		r, err := s.findSecurityGroup(c.Scope, in.GroupId, in.GroupName)
		if err != nil {
			return err
		}
		id = r.Value.ID
		if r.Value.IsDefault() {
			return wire.NewError(ec2.ErrCannotDelete, "the specified group: \"%s\" name: \"%s\" cannot be deleted by a user", id, r.Value.Name)
		}
		if who := s.user(c.Scope, id); who != "" {
			return wire.NewError(ec2.ErrDependencyViolation, "resource %s has a dependent object: the database %s is in it.", id, who)
		}
		return s.Commit(ctx, state.Remove(r.Key, r.Revision))
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteSecurityGroupResult{Return: wire.Some(true), GroupId: wire.Some(id)}, nil
}

// groupFilters has the names of the filters of DescribeSecurityGroups.
var groupFilters = []string{
	"description", "group-id", "group-name", "ip-permission.cidr", "ip-permission.from-port", "ip-permission.to-port", "ip-permission.protocol",
	"owner-id", "tag:", "tag-key", "vpc-id",
}

// describeSecurityGroups lists the groups of the caller's region.
func (s *service) describeSecurityGroups(ctx context.Context, c front.Call, in *ec2.DescribeSecurityGroupsRequest) (*ec2.DescribeSecurityGroupsResult, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	conditions, err := readFilters(in.Filters, groupFilters...)
	if err != nil {
		return nil, err
	}
	wanted, named, err := s.groupsNamed(c.Scope, in.GroupIds, in.GroupNames)
	if err != nil {
		return nil, err
	}
	var all []ec2.SecurityGroup
	for _, g := range s.book(c.Scope).In(c.Scope) {
		if (named == "" || wanted[g.ID]) && conditions.match(groupAttributes(g)) {
			all = append(all, securityGroupOut(g))
		}
	}
	chosen, token, err := pageOf(all, func(g ec2.SecurityGroup) string { return *g.GroupId }, in.MaxResults, in.NextToken, named)
	return &ec2.DescribeSecurityGroupsResult{SecurityGroups: chosen, NextToken: token}, err
}

// groupsNamed returns the ids of the groups that a request names, and the parameter that names
// them.
func (s *service) groupsNamed(scope spec.Scope, ids, names []string) (wanted map[string]bool, named string, err error) {
	wanted = map[string]bool{}
	for _, id := range ids {
		named = "GroupIds"
		if _, err := s.groupWith(scope, id); err != nil {
			return nil, "", err
		}
		wanted[id] = true
	}
	for _, name := range names {
		named = "GroupNames"
		g, err := s.groupNamed(scope, name)
		if err != nil {
			return nil, "", err
		}
		wanted[g.ID] = true
	}
	return wanted, named, nil
}

func groupAttributes(g network.Group) map[string][]string {
	attributes := map[string][]string{
		"group-id": {g.ID}, "group-name": {g.Name}, "vpc-id": {network.VPC}, "description": {g.Description}, "owner-id": {g.Account},
	}
	addTags(attributes, g.Tags)
	for _, r := range g.Rules {
		for name, value := range map[string]string{
			"cidr": r.Source.String(), "from-port": strconv.Itoa(r.From), "to-port": strconv.Itoa(r.To), "protocol": r.Protocol,
		} {
			attributes["ip-permission."+name] = append(attributes["ip-permission."+name], value)
		}
	}
	return attributes
}

// securityGroupOut returns a group as the API shows it. The rule for egress says that databases may
// connect to anywhere.
func securityGroupOut(g network.Group) ec2.SecurityGroup {
	return ec2.SecurityGroup{
		GroupId: wire.Some(g.ID), GroupName: wire.Some(g.Name), Description: wire.Some(g.Description), VpcId: wire.Some(network.VPC), OwnerId: wire.Some(g.Account),
		SecurityGroupArn: wire.Some(g.ARN()), Tags: tagsOut(g.Tags), IpPermissions: permissionsOut(g.Rules),
		IpPermissionsEgress: permissionsOut([]network.Rule{{Protocol: network.AnyProtocol, From: -1, To: -1, Source: cidr.Everyone}}),
	}
}

// permissionsOut puts the rules for the same ports together, as EC2 does.
func permissionsOut(rules []network.Rule) []ec2.IpPermission {
	out := []ec2.IpPermission{}
	at := map[[3]string]int{}
	for _, r := range rules {
		key := [3]string{r.Protocol, strconv.Itoa(r.From), strconv.Itoa(r.To)}
		n, known := at[key]
		if !known {
			n, at[key] = len(out), len(out)
			p := ec2.IpPermission{
				IpProtocol: wire.Some(r.Protocol), UserIdGroupPairs: []ec2.UserIdGroupPair{}, IpRanges: []ec2.IpRange{},
				Ipv6Ranges: []ec2.Ipv6Range{}, PrefixListIds: []ec2.PrefixListId{},
			}
			if r.Protocol != network.AnyProtocol {
				p.FromPort, p.ToPort = wire.Number(r.From), wire.Number(r.To)
			}
			out = append(out, p)
		}
		out[n].IpRanges = append(out[n].IpRanges, ec2.IpRange{CidrIp: wire.Some(r.Source.String()), Description: wire.Text(r.Description)})
	}
	return out
}

package ec2

import (
	"context"
	"slices"

	"howdah/api/ec2"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/network"
	"howdah/internal/model/spec"
)

// describeVpcs shows the one network that a home has.
func (s *service) describeVpcs(_ context.Context, c front.Call, in *ec2.DescribeVpcsRequest) (*ec2.DescribeVpcsResult, error) {
	named := ""
	for _, id := range in.VpcIds {
		named = "VpcIds"
		if err := checkVPC(&id); err != nil {
			return nil, err
		}
	}
	conditions, err := readFilters(in.Filters, "cidr", "cidr-block", "is-default", "isDefault", "owner-id", "state", "tag:", "tag-key", "vpc-id")
	if err != nil {
		return nil, err
	}
	var all []ec2.Vpc
	block := s.block
	if conditions.match(map[string][]string{
		"cidr": {block}, "cidr-block": {block}, "is-default": {"true"}, "isDefault": {"true"}, "owner-id": {c.Account},
		"state": {"available"}, "vpc-id": {network.VPC},
	}) {
		all = append(all, ec2.Vpc{
			VpcId: wire.Some(network.VPC), CidrBlock: wire.Some(block), IsDefault: wire.Some(true), State: wire.Some("available"), OwnerId: wire.Some(c.Account),
			InstanceTenancy: wire.Some("default"), DhcpOptionsId: wire.Some("dopt-howdah"), Tags: []ec2.Tag{},
		})
	}
	chosen, token, err := pageOf(all, func(v ec2.Vpc) string { return *v.VpcId }, in.MaxResults, in.NextToken, named)
	return &ec2.DescribeVpcsResult{Vpcs: chosen, NextToken: token}, err
}

// describeSubnets shows a subnet for each zone of the home: those of the default
// subnet group.
func (s *service) describeSubnets(ctx context.Context, c front.Call, in *ec2.DescribeSubnetsRequest) (*ec2.DescribeSubnetsResult, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	conditions, err := readFilters(in.Filters, "availability-zone", "availabilityZone", "default-for-az", "owner-id", "state", "subnet-id", "tag:", "tag-key", "vpc-id")
	if err != nil {
		return nil, err
	}
	var all []ec2.Subnet
	known := map[string]bool{}
	for _, zone := range s.zones() {
		id, name := spec.SubnetOf(zone), c.ZoneName(zone)
		known[id] = true
		if len(in.SubnetIds) > 0 && !slices.Contains(in.SubnetIds, id) || !conditions.match(map[string][]string{
			"availability-zone": {name}, "availabilityZone": {name}, "default-for-az": {"true"}, "owner-id": {c.Account},
			"state": {"available"}, "subnet-id": {id}, "vpc-id": {network.VPC},
		}) {
			continue
		}
		all = append(all, ec2.Subnet{
			SubnetId: wire.Some(id), VpcId: wire.Some(network.VPC), AvailabilityZone: wire.Some(name), CidrBlock: wire.Some(s.block), State: wire.Some("available"),
			OwnerId: wire.Some(c.Account), DefaultForAz: wire.Some(true), MapPublicIpOnLaunch: wire.Some(false), Tags: []ec2.Tag{},
			SubnetArn: wire.Some(network.ARN(c.Scope, "subnet", id)),
		})
	}
	named := ""
	for _, id := range in.SubnetIds {
		if named = "SubnetIds"; !known[id] {
			return nil, wire.NewError(ec2.ErrInvalidSubnetIDNotFound, "The subnet ID '%s' does not exist", id)
		}
	}
	chosen, token, err := pageOf(all, func(v ec2.Subnet) string { return *v.SubnetId }, in.MaxResults, in.NextToken, named)
	return &ec2.DescribeSubnetsResult{Subnets: chosen, NextToken: token}, err
}

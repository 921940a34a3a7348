#!/usr/bin/env bash
# The journey of a user of the AWS CLI through a running Howdah, with psql for the databases.
#
#     eval "$(bin/howdah env --home DIR)" && test/e2e/cli_journey.sh
#
# HOWDAH_TEST_AWS names the program, "aws" by default. Every step is a sentence that is printed when it
# begins; the first one that fails ends the run. What was created is deleted, also after a failure.
set -euo pipefail

aws=${HOWDAH_TEST_AWS:-aws}
password=first-Secret-1
work=$(mktemp -d)
export AWS_PAGER= AWS_MAX_ATTEMPTS=1 PGCONNECT_TIMEOUT=$((3 * ${HOWDAH_TEST_PATIENCE:-1})) PGPASSWORD=$password PGSSLMODE=verify-full
# Where the CLI finds our authority, psql does too.
export PGSSLROOTCERT=${AWS_CA_BUNDLE:?run: eval "\$(howdah env)"}
writer=

step() { printf '%7.1f  %s\n' "$(($(date +%s%N) / 100000000 - began))e-1" "$*"; }
began=$(($(date +%s%N) / 100000000))

fail() {
	echo "failed: $*" >&2
	exit 1
}

rds() { "$aws" rds "$@" --output text; }
ec2() { "$aws" ec2 "$@" --output text; }

# is WANT COMMAND...: the command prints exactly this.
is() {
	local want=$1 got
	shift
	got=$("$@") || fail "$*"
	[[ $got == "$want" ]] || fail "$* printed '$got', not '$want'"
}

# refused CODE COMMAND...: the command fails with this error of the API.
refused() {
	local code=$1 said
	shift
	if said=$("$@" 2>&1); then fail "$* succeeded instead of answering $code"; fi
	[[ $said == *"($code)"* ]] || fail "$* said '$said', not $code"
}

# eventually SECONDS COMMAND...: the command succeeds within that time, or HOWDAH_TEST_PATIENCE times that.
eventually() {
	local until=$((SECONDS + $1 * ${HOWDAH_TEST_PATIENCE:-1}))
	shift
	until "$@" >"$work/last" 2>&1; do
		((SECONDS < until)) || fail "not in time: $*: $(cat "$work/last")"
		sleep 0.3
	done
}

instance() { rds describe-db-instances --db-instance-identifier "$1" --query "DBInstances[0].$2"; }
cluster() { rds describe-db-clusters --db-cluster-identifier "$1" --query "DBClusters[0].$2"; }
status_is() { [[ $(instance "$1" DBInstanceStatus) == "$2" ]]; }
cluster_is() { [[ $(cluster "$1" Status) == "$2" ]]; }
gone() { ! instance "$1" DBInstanceStatus >/dev/null 2>&1; }
cluster_gone() { ! cluster "$1" Status >/dev/null 2>&1; }
sql() { psql -XAtq -v ON_ERROR_STOP=1 -d "host=$1 port=${3:-5432} user=boss dbname=postgres" -c "$2"; }
sql_is() { [[ $(sql "$1" "$2") == "$3" ]]; }

# available NAME: the waiter of the CLI asks every 30 s; it is used where the wait is over.
available() {
	eventually 60 status_is "$1" available
	rds wait db-instance-available --db-instance-identifier "$1"
}

# shellcheck disable=SC2317  # the trap calls it
clean() {
	local code=$? name
	# What it fails on is deleted below: this is the last look at it.
	if ((code)); then ${HOWDAH_TEST_STATUS:-true} || true; fi
	[[ -z $writer ]] || kill "$writer" 2>/dev/null || true
	for name in cli cli-other cli-1 cli-2; do
		rds delete-db-instance --db-instance-identifier $name --skip-final-snapshot >/dev/null 2>&1 || true
	done
	rds delete-db-cluster --db-cluster-identifier cli-cluster --skip-final-snapshot >/dev/null 2>&1 || true
	rm -rf "$work"
	exit $code
}
trap clean EXIT

# A window that does not open while the journey goes on.
day=$(LC_ALL=C date -u -d '+3 days' +%a | tr A-Z a-z)
create=(create-db-instance --preferred-maintenance-window "$day:20:00-$day:20:30" --db-instance-class db.t3.micro --engine postgres --allocated-storage 20
	--master-username boss --master-user-password "$password")

step "the key belongs to an account"
account=$("$aws" sts get-caller-identity --query Account --output text)
is "arn:aws:iam::$account:root" "$aws" sts get-caller-identity --query Arn --output text

step "a Multi-AZ instance with tags, and a cluster with two instances, are created"
is creating rds "${create[@]}" --db-instance-identifier cli --multi-az --tags Key=team,Value=blue --query DBInstance.DBInstanceStatus
refused InvalidDBInstanceState rds reboot-db-instance --db-instance-identifier cli
refused DBInstanceAlreadyExists rds "${create[@]}" --db-instance-identifier cli
refused InvalidParameterValue rds "${create[@]}" --db-instance-identifier cli--2
is creating rds create-db-cluster --db-cluster-identifier cli-cluster --engine aurora-postgresql --master-username boss \
	--master-user-password "$password" --query DBCluster.Status
rds wait db-cluster-available --db-cluster-identifier cli-cluster
for n in 1 2; do
	rds create-db-instance --db-instance-identifier cli-$n --db-instance-class db.t3.micro --engine aurora-postgresql \
		--db-cluster-identifier cli-cluster --promotion-tier $n >/dev/null
done

step "the instance is available, and psql logs in with TLS and the server verified"
available cli
endpoint=$(instance cli Endpoint.Address)
is t sql "$endpoint" "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
if PGPASSWORD=wrong-Secret-1 sql "$endpoint" "SELECT 1" 2>/dev/null; then fail "a wrong password logs in"; fi
if PGSSLMODE=disable sql "$endpoint" "SELECT 1" 2>/dev/null; then fail "a login without TLS"; fi

step "the log of an instance of the cluster is read from the beginning"
eventually 60 status_is cli-1 available
file=$(rds describe-db-log-files --db-instance-identifier cli-1 --query 'DescribeDBLogFiles[0].LogFileName')
rds download-db-log-file-portion --db-instance-identifier cli-1 --log-file-name "$file" --starting-token 0 >"$work/log"
grep -q "database system is ready to accept connections" "$work/log" || fail "the log $file: $(head -3 "$work/log")"
refused DBLogFileNotFoundFault rds download-db-log-file-portion --db-instance-identifier cli-1 --log-file-name error/none

step "a reboot with failover under load loses nothing that was acknowledged"
sql "$endpoint" "CREATE TABLE kept (n int PRIMARY KEY)"
(
	n=0
	while :; do
		n=$((n + 1))
		if sql "$endpoint" "INSERT INTO kept VALUES ($n)" 2>/dev/null; then echo $n >>"$work/acknowledged"; fi
	done
) &
writer=$!
eventually 10 test -s "$work/acknowledged"
zone=$(instance cli AvailabilityZone)
eventually 30 rds reboot-db-instance --db-instance-identifier cli --force-failover --query DBInstance.DBInstanceStatus
available cli
[[ $(instance cli AvailabilityZone) != "$zone" ]] || fail "the primary is still in $zone"
lines=$(wc -l <"$work/acknowledged")
more() { (($(wc -l <"$work/acknowledged") > lines + 3)); }
eventually 10 more
kill "$writer"
wait "$writer" 2>/dev/null || true
writer=
sql "$endpoint" "SELECT n FROM kept" | sort >"$work/found"
lost=$(sort "$work/acknowledged" | comm -23 - "$work/found")
[[ -z $lost ]] || fail "acknowledged and lost:" $lost

step "the events tell of it"
rds describe-events --source-type db-instance --source-identifier cli --duration 60 --query 'Events[].[Message]' >"$work/events"
for message in "DB instance created" "Multi-AZ instance failover started." "Multi-AZ instance failover completed"; do
	grep -qxF "$message" "$work/events" || fail "no event '$message': $(cat "$work/events")"
done
is failover rds describe-events --source-type db-instance --event-categories failover \
	--query 'Events[0].EventCategories[0]'

step "changes wait for the window, or are made at once"
is db.t3.small rds modify-db-instance --db-instance-identifier cli --db-instance-class db.t3.small \
	--query DBInstance.PendingModifiedValues.DBInstanceClass
is modifying rds modify-db-instance --db-instance-identifier cli --allocated-storage 30 --apply-immediately \
	--query DBInstance.DBInstanceStatus
eventually 60 status_is cli available
is "30	db.t3.small" instance cli '[AllocatedStorage,DBInstanceClass]'
is resetting-master-credentials rds modify-db-instance --db-instance-identifier cli --master-user-password second-Secret-2 \
	--query DBInstance.DBInstanceStatus
eventually 60 status_is cli available
PGPASSWORD=second-Secret-2 eventually 10 sql_is "$endpoint" "SELECT 1" 1

step "the cluster has a writer and a reader, which change places"
for n in 1 2; do available cli-$n; done
writes=$(cluster cli-cluster Endpoint)
reads=$(cluster cli-cluster ReaderEndpoint)
heir=$(cluster cli-cluster 'DBClusterMembers[?!IsClusterWriter].DBInstanceIdentifier | [0]')
sql "$writes" "CREATE TABLE t (n int); INSERT INTO t VALUES (1)"
eventually 10 sql_is "$reads" "SELECT n, pg_is_in_recovery() FROM t" "1|t"
eventually 30 rds failover-db-cluster --db-cluster-identifier cli-cluster --target-db-instance-identifier "$heir"
eventually 60 cluster_is cli-cluster available
is "$heir" cluster cli-cluster 'DBClusterMembers[?IsClusterWriter].DBInstanceIdentifier | [0]'
eventually 10 sql_is "$writes" "SELECT pg_is_in_recovery()" f
is CUSTOM rds create-db-cluster-endpoint --db-cluster-identifier cli-cluster --db-cluster-endpoint-identifier cli-reports \
	--endpoint-type ANY --static-members cli-1 --query EndpointType
endpoint_is() { [[ $(rds describe-db-cluster-endpoints --db-cluster-endpoint-identifier cli-reports --query 'DBClusterEndpoints[0].Status') == "$1" ]]; }
eventually 20 endpoint_is available
custom=$(rds describe-db-cluster-endpoints --db-cluster-endpoint-identifier cli-reports --query 'DBClusterEndpoints[0].Endpoint')
eventually 20 sql_is "$custom" "SELECT n FROM t" 1

step "lists come in pages and by filters"
rds create-db-instance --db-instance-identifier cli-other --db-instance-class db.t3.micro --engine postgres --allocated-storage 20 \
	--master-username boss --master-user-password "$password" >/dev/null
is "cli cli-1 cli-2 cli-other" bash -c "'$aws' rds describe-db-instances --page-size 20 --output text \
	--query \"DBInstances[?starts_with(DBInstanceIdentifier, 'cli')].[DBInstanceIdentifier]\" | paste -sd' '"
"$aws" rds describe-db-instances --max-items 1 --output json >"$work/page"
token=$(sed -n 's/.*"NextToken": "\(.*\)".*/\1/p' "$work/page")
[[ -n $token ]] || fail "no token on a page: $(cat "$work/page")"
rds describe-db-instances --max-items 1 --starting-token "$token" --query 'DBInstances[0].DBInstanceIdentifier' >/dev/null
is "cli-1 cli-2" bash -c "'$aws' rds describe-db-instances --filters Name=db-cluster-id,Values=cli-cluster --output text \
	--query 'DBInstances[].[DBInstanceIdentifier]' | paste -sd' '"
refused InvalidParameterValue rds describe-db-instances --filters Name=color,Values=blue
refused DBInstanceNotFound rds describe-db-instances --db-instance-identifier none

step "tags are added, listed and removed"
arn=$(instance cli DBInstanceArn)
rds add-tags-to-resource --resource-name "$arn" --tags Key=cost,Value=7
rds remove-tags-from-resource --resource-name "$arn" --tag-keys team
is "cost	7" rds list-tags-for-resource --resource-name "$arn" --query 'TagList[].[Key,Value]'

step "a security group lets in whom it says"
group=$(ec2 create-security-group --group-name cli --description "made by the command line" --query GroupId)
is "True	10.0.0.0/8	5432" ec2 authorize-security-group-ingress --group-id "$group" --protocol tcp --port 5432 --cidr 10.0.0.0/8 \
	--query '[Return,SecurityGroupRules[0].CidrIpv4,SecurityGroupRules[0].ToPort]'
is active rds modify-db-instance --db-instance-identifier cli-other --vpc-security-group-ids "$group" --query 'DBInstance.VpcSecurityGroups[0].Status'
eventually 60 status_is cli-other available
other=$(instance cli-other Endpoint.Address)
shut() { ! sql "$other" "SELECT 1"; }
eventually 5 shut
is True ec2 authorize-security-group-ingress --group-name cli --ip-permissions \
	'IpProtocol=tcp,FromPort=5432,ToPort=5432,IpRanges=[{CidrIp=127.0.0.0/8,Description=this machine}]' --query Return
eventually 5 sql_is "$other" "SELECT 1" 1
is "$group	cli" ec2 describe-security-groups --filters Name=group-name,Values='cl*' --query 'SecurityGroups[].[GroupId,GroupName]'
refused DependencyViolation ec2 delete-security-group --group-id "$group"
refused InvalidGroup.NotFound ec2 describe-security-groups --group-ids sg-0123

step "deleted, all is gone"
refused InvalidParameterCombination rds delete-db-instance --db-instance-identifier cli
refused InvalidDBClusterStateFault rds delete-db-cluster --db-cluster-identifier cli-cluster --skip-final-snapshot
for name in cli cli-other cli-1 cli-2; do
	is deleting rds delete-db-instance --db-instance-identifier $name --skip-final-snapshot --query DBInstance.DBInstanceStatus
done
for name in cli cli-other cli-1 cli-2; do eventually 60 gone $name; done
rds wait db-instance-deleted --db-instance-identifier cli
is deleting rds delete-db-cluster --db-cluster-identifier cli-cluster --skip-final-snapshot --query DBCluster.Status
eventually 30 cluster_gone cli-cluster
rds wait db-cluster-deleted --db-cluster-identifier cli-cluster
# Another database may be there by now: it has no such table, and another password.
if PGPASSWORD=second-Secret-2 sql "$endpoint" "SELECT n FROM kept LIMIT 1" 2>/dev/null; then fail "the endpoint still answers"; fi
ec2 delete-security-group --group-id "$group" >/dev/null
step "done"

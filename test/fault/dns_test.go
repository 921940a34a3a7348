package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
	"howdah/internal/engine/postgres"
	"howdah/internal/model/zone"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgversion"
	"howdah/internal/testkit/rig"
)

const (
	dnsZone    = zone.Zone("howdah.internal")
	dnsAccount = "123456789012"
)

// A home gets a DNS zone while a database runs: it has a name soon, and clients that verify the
// server's certificate in full connect by it. Names of clusters lead where they say. A failover keeps
// them, and they are answered while no control plane runs.
func TestNames(t *testing.T) {
	s := begin(t, nil)
	s.given("orders", true)
	byAddress, err := s.rig.Config(t.Context(), "orders")
	s.must(err, "find the address")
	began := s.begunAt(byAddress)

	s.rig.KillPart("serve")
	s.rig.Serve = []string{"--dns-zone", string(dnsZone)}
	s.must(s.rig.StartPart("serve"), "start the control plane with a zone")
	orders := s.named(zone.Instance, "orders")
	s.eventually(60*time.Second, func() error { return s.shows("orders", orders) })
	if at := s.begunAt(s.byName(orders)); !at.Equal(began) {
		t.Errorf("PostgreSQL began at %s, and now at %s: the zone restarted it", began, at)
	}
	s.must(s.connects(byAddress), "connect by the address as before")

	s.cluster("shop", 3)
	reader := s.named(zone.Reader, "shop")
	s.eventually(60*time.Second, func() error { return s.resolves(reader, 2) })
	if replica := s.isReplica(s.byName(reader)); !replica {
		t.Error("the readers' name leads to the primary")
	}
	writer := s.named(zone.Writer, "shop")
	s.eventually(30*time.Second, func() error { return s.resolves(writer, 1) })
	if replica := s.isReplica(s.byName(writer)); replica {
		t.Error("the writer's name leads to a replica")
	}
	if pgversion.Major() >= 16 {
		s.spreads(reader, 2)
	}
	for n := range 3 {
		s.must(s.connects(s.byName(s.named(zone.Instance, fmt.Sprintf("shop-%d", n+1)))), "connect to an instance")
	}

	id, err := s.rig.Database(t.Context(), "orders")
	s.must(err, "find the database")
	before, err := s.lookUp(orders)
	s.must(err, "look the name up")
	s.failsOver("orders", id)
	s.eventually(30*time.Second, func() error { return s.writesBy(orders) })
	after, err := s.lookUp(orders)
	if !slices.Equal(before, after) || err != nil {
		t.Errorf("the name had %v before the failover, and has %v, %v", before, after, err)
	}
	s.rig.KillPart("serve")
	s.must(s.connects(s.byName(orders)), "connect by the name without a control plane")
	s.must(s.resolves(reader, 2), "look the readers up without a control plane")
	s.must(s.rig.StartPart("serve"), "start the control plane again")
}

// cluster makes a cluster, all of whose instances are made at once.
func (s *story) cluster(name string, instances int) {
	s.Helper()
	in := &rds.CreateDBClusterMessage{DBClusterIdentifier: &name, Engine: new("aurora-postgresql"), MasterUsername: new("app"), MasterUserPassword: new(rig.Password)}
	s.must(s.rig.Call(s.Context(), "CreateDBCluster", in, &rds.CreateDBClusterResult{}), "create the cluster")
	for n := range instances {
		member := fmt.Sprintf("%s-%d", name, n+1)
		in := &rds.CreateDBInstanceMessage{DBInstanceIdentifier: &member, DBClusterIdentifier: &name, Engine: new("aurora-postgresql"), DBInstanceClass: new("db.t3.micro")}
		s.must(s.rig.Call(s.Context(), "CreateDBInstance", in, &rds.CreateDBInstanceResult{}), "create "+member)
	}
	for n := range instances {
		s.must(s.rig.WaitStatus(s.Context(), fmt.Sprintf("%s-%d", name, n+1), "available", 2*time.Minute), "wait for the cluster")
	}
}

func (s *story) named(kind zone.Kind, id string) string {
	s.Helper()
	name, err := dnsZone.Name(kind, id, dnsAccount, s.rig.Home.Region)
	s.must(err, "name "+id)
	return name
}

// shows returns nil if the API shows an instance by this name.
func (s *story) shows(instance, name string) error {
	i, err := s.rig.Instance(s.Context(), instance)
	if err == nil && (i.Endpoint == nil || *i.Endpoint.Address != name) {
		err = fmt.Errorf("the API shows %+v, want %s", i.Endpoint, name)
	}
	return err
}

func (s *story) lookUp(name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(s.Context(), patience.For(5*time.Second))
	defer cancel()
	return s.rig.Resolver().LookupHost(ctx, name+".")
}

// resolves returns nil if a name has this many addresses.
func (s *story) resolves(name string, addresses int) error {
	all, err := s.lookUp(name)
	if err == nil && len(all) != addresses {
		err = fmt.Errorf("%s has the addresses %v", name, all)
	}
	return err
}

// byName returns a configuration for connections by a name that the certificate must say.
func (s *story) byName(name string) *pgx.ConnConfig {
	s.Helper()
	config, err := s.rig.ConfigAt(name, 5432)
	s.must(err, "configure a connection")
	return config
}

func (s *story) connects(config *pgx.ConnConfig) error {
	var one int
	return s.answers(config, "SELECT 1", &one)
}

func (s *story) begunAt(config *pgx.ConnConfig) (at time.Time) {
	s.Helper()
	s.must(s.answers(config, "SELECT pg_postmaster_start_time()", &at), "ask when PostgreSQL began")
	return at
}

func (s *story) isReplica(config *pgx.ConnConfig) (recovery bool) {
	s.Helper()
	s.must(s.answers(config, "SELECT pg_is_in_recovery()", &recovery), "ask whether it is a replica")
	return recovery
}

// writesBy returns nil if a name leads to a primary.
func (s *story) writesBy(name string) error {
	recovery := true
	if err := s.answers(s.byName(name), "SELECT pg_is_in_recovery()", &recovery); err != nil {
		return err
	}
	if recovery {
		return errors.New(name + " leads to a replica")
	}
	return nil
}

// spreads has libpq choose among the addresses of a name (load_balance_hosts, from PostgreSQL 16 on):
// each of them gets connections. psql asks the resolver of the system, which here knows the zone only.
func (s *story) spreads(name string, servers int) {
	s.Helper()
	install, err := postgres.Find(pgversion.Major())
	s.must(err, "find psql")
	resolv := filepath.Join(s.rig.Dir, "resolv.conf")
	s.must(os.WriteFile(resolv, []byte("nameserver "+s.rig.Nameserver().Addr().String()+"\n"), 0o644), "name the nameserver")
	got := map[string]int{}
	for range 10 * servers {
		got[s.psqlIn(install, resolv, "host="+name+" load_balance_hosts=random sslmode=verify-full sslrootcert="+s.rig.Home.CAFile()+" user=app dbname=postgres",
			"SELECT inet_server_addr()")]++
	}
	s.Logf("load_balance_hosts=random: %v", got)
	if len(got) != servers {
		s.Errorf("connections to %s went to %v, want all of %d servers", name, got, servers)
	}
}

// psqlIn runs psql with a file in the place of the system's resolv.conf.
func (s *story) psqlIn(install postgres.Install, resolv, connect, sql string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience.For(10*time.Second))
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "-m", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, resolv,
		install.Program("psql"), "-X", "-A", "-t", "-w", "-d", connect, "-c", sql)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+rig.Password)
	out, err := cmd.CombinedOutput()
	s.must(err, "psql: "+string(out))
	return strings.TrimSpace(string(out))
}

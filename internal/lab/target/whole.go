package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/failover/postmortem"
	"howdah/internal/lab/address"
	"howdah/internal/lab/fault"
)

// errStandby says why a database is not whole yet.
var errStandby = errors.New("it is not whole")

// Whole waits until all copies of the database are ready, those of a Multi-AZ instance and of a cluster
// confirm commits, and replicas stream.
func (h *Howdah) Whole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	err := h.poll(ctx, func() (bool, error) {
		d, err := h.Truth(ctx)
		if err != nil {
			return false, err
		}
		if last = whole(d, h.now.MultiAZ); last == nil {
			last = h.streams(ctx)
		}
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// whole returns what a database lacks, or nil.
func whole(d *admin.Database, multiAZ bool) error {
	confirming := 0
	if d == nil {
		return fmt.Errorf("%w: nobody knows it yet", errStandby)
	}
	for _, m := range d.Members {
		switch {
		case !m.Ready || m.Going != "":
			return fmt.Errorf("%w: %s is %s %s", errStandby, m.Name, m.State, m.Detail)
		case m.Sync == admin.SyncSync || m.Sync == admin.SyncQuorum:
			confirming++
		}
	}
	if d.Status != available {
		return fmt.Errorf("%w: it is %s", errStandby, d.Status)
	}
	if multiAZ && confirming == 0 {
		return fmt.Errorf("%w: no standby confirms commits", errStandby)
	}
	return nil
}

// streams returns which standbys do not stream from the writer, or nil.
func (h *Howdah) streams(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, h.server.Config())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	want := h.now.Copies()
	var streaming int
	const sql = "SELECT count(*) FROM pg_catalog.pg_stat_replication WHERE state = 'streaming' AND replay_lsn IS NOT NULL"
	if err := conn.QueryRow(ctx, sql).Scan(&streaming); err != nil {
		return err
	}
	if streaming < want {
		return fmt.Errorf("%w: %d of %d standbys stream", errStandby, streaming, want)
	}
	return nil
}

// Truth is what the control plane knows of the database, or nil.
func (h *Howdah) Truth(ctx context.Context) (*admin.Database, error) {
	var out admin.DatabaseAnswer
	if err := h.API.Admin(ctx, admin.VerbDatabase, admin.DatabaseRequest{Name: h.record.Identifier}, &out); err != nil {
		return nil, err
	}
	for n := range out.Databases {
		if out.Databases[n].ResourceID == h.resource {
			return &out.Databases[n], nil
		}
	}
	return nil, nil
}

// Failovers returns the post-mortems of the database since a moment, oldest first.
func (h *Howdah) Failovers(ctx context.Context, since time.Time) (all []postmortem.Record, err error) {
	var out admin.FailoversAnswer
	if err := h.API.Admin(ctx, admin.VerbFailovers, admin.FailoversRequest{Name: h.resource}, &out); err != nil {
		return nil, err
	}
	for _, r := range out.Failovers {
		if r.Recorded.After(since) {
			all = append([]postmortem.Record{r}, all...)
		}
	}
	return all, nil
}

// Failover asks for a failover in good order, and does not wait for it.
func (h *Howdah) Failover(ctx context.Context) error {
	if h.now.Cluster {
		return h.API.RDS(ctx, "FailoverDBCluster", &rds.FailoverDBClusterMessage{DBClusterIdentifier: &h.record.Identifier}, &rds.FailoverDBClusterResult{})
	}
	in := &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &h.record.Identifier, ForceFailover: new(true)}
	return h.API.RDS(ctx, "RebootDBInstance", in, &rds.RebootDBInstanceResult{})
}

// Reboot restarts the database, and all instances of a cluster, and waits until all are available again.
func (h *Howdah) Reboot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	names := []string{h.record.Identifier}
	if h.now.Cluster {
		names = nil
		for n := range h.now.Standbys + 1 {
			names = append(names, h.member(n+1))
		}
	}
	for _, name := range names {
		err := h.poll(ctx, func() (bool, error) {
			err := h.API.RDS(ctx, "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &name}, &rds.RebootDBInstanceResult{})
			if client.IsCode(err, rds.ErrInvalidDBInstanceState) {
				return false, nil // something else goes on, such as the restart of another one
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("restart %s: %w", name, err)
		}
		if err := h.waitInstance(ctx, name); err != nil {
			return err
		}
	}
	return h.WholeAgain(ctx)
}

// Node is a standby that serves reads.
type Node struct {
	Name   string
	Server address.Server
}

// Nodes lists the standbys that serve reads: replicas, and readers of a cluster. The standby of a
// Multi-AZ instance is none.
func (h *Howdah) Nodes(ctx context.Context) (all []Node, err error) {
	names, err := h.nodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		i, err := h.instance(ctx, name)
		if err != nil {
			return nil, err
		}
		server, err := h.connects(h.API.Reach(ctx, endpointOf(i.Endpoint)))
		if err != nil {
			return nil, err
		}
		all = append(all, Node{Name: name, Server: server})
	}
	return all, nil
}

// steady is for how long a database has to be whole after a fault: what the control plane knows of it may
// be a moment old.
const steady = 3 * time.Second

// WholeAgain waits until the database is whole, and stays so for a while.
func (h *Howdah) WholeAgain(ctx context.Context) error {
	var since time.Time
	var last error
	err := h.poll(ctx, func() (bool, error) {
		if last = h.wholeNow(ctx); last != nil {
			since = time.Time{}
			return false, nil //nolint:nilerr // it may be later
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) >= steady, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// wholeNow returns what the database lacks now, or why nobody knows, or nil.
func (h *Howdah) wholeNow(ctx context.Context) error {
	d, err := h.Truth(ctx)
	if err != nil {
		return err
	}
	if err := whole(d, h.now.MultiAZ); err != nil {
		return err
	}
	return h.streams(ctx)
}

// Ground is where faults are made for this database.
func (h *Howdah) Ground() (*fault.Ground, error) {
	if h.Home == nil {
		return nil, fmt.Errorf("%w: the Howdah is not on this machine", fault.ErrImpossible)
	}
	return &fault.Ground{Home: h.Home, API: h.API, Truth: h.Truth, Dir: h.Dir, Clock: h.Clock}, nil
}

package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"howdah/api/rds"
	"howdah/internal/testkit/rig"
)

// fault is something that happens to a database.
type fault struct {
	name, target string
	// keeps says that the primary stays. Then the time is measured for which writes stall.
	keeps bool
	// either says that whichever member has every write leads on. That may be the one that was hit.
	either bool
	strike func(ctx context.Context, r *rig.Rig, hit victims) error
	mend   func(ctx context.Context, r *rig.Rig, hit victims) error
}

// victims are the primary, and a standby that confirms its commits.
type victims struct{ primary, standby rig.Member }

// between is the pause between two faults of one scenario.
const between = 500 * time.Millisecond

var (
	postgresKilled = fault{
		name: "PostgreSQL of the primary killed (-9)", target: "1",
		strike: func(_ context.Context, _ *rig.Rig, hit victims) error { return hit.primary.KillPostgres() },
	}
	patroniKilled = fault{
		name: "Patroni of the primary killed (-9)", target: "1.5",
		strike: func(_ context.Context, _ *rig.Rig, hit victims) error { return hit.primary.KillPatroni() },
	}
	postgresStopped = fault{
		name: "PostgreSQL of the primary stopped (SIGSTOP) beside a live Patroni", target: "4",
		strike: func(_ context.Context, _ *rig.Rig, hit victims) error {
			return hit.primary.SignalPostgres(syscall.SIGSTOP)
		},
	}
	frozen = fault{
		name: "host lost: frozen", target: "3",
		strike: func(_ context.Context, _ *rig.Rig, hit victims) error { return hit.primary.Freeze() },
		mend:   func(_ context.Context, _ *rig.Rig, hit victims) error { return hit.primary.Thaw() },
	}
	allKilled = fault{
		name: "host lost: agent, Patroni and PostgreSQL killed", target: "3",
		strike: func(_ context.Context, _ *rig.Rig, hit victims) error { return hit.primary.Lose() },
		mend: func(_ context.Context, r *rig.Rig, hit victims) error {
			return r.StartPart("agent-" + hit.primary.ZoneLetter())
		},
	}
	standbyFrozen = fault{
		name: "the standby's host freezes: writes stall", target: "3", keeps: true,
		strike: func(_ context.Context, _ *rig.Rig, hit victims) error { return hit.standby.Freeze() },
		mend:   func(_ context.Context, _ *rig.Rig, hit victims) error { return hit.standby.Thaw() },
	}
	bothKilled = fault{
		name: "the standby's PostgreSQL killed, the primary's 0.5 s later", target: "3", either: true,
		strike: func(ctx context.Context, _ *rig.Rig, hit victims) error {
			err := hit.standby.KillPostgres()
			sleep(ctx, between)
			return errors.Join(err, hit.primary.KillPostgres())
		},
	}
	rebooted = fault{
		name: "planned failover: reboot with failover", target: "1",
		strike: func(ctx context.Context, r *rig.Rig, _ victims) error {
			in := &rds.RebootDBInstanceMessage{DBInstanceIdentifier: ptr(instance), ForceFailover: ptr(true)}
			return r.Call(ctx, "RebootDBInstance", in, &rds.RebootDBInstanceResult{})
		},
	}
	clusterFailover = fault{
		name: "planned failover: FailoverDBCluster", target: "1",
		strike: func(ctx context.Context, r *rig.Rig, _ victims) error {
			in := &rds.FailoverDBClusterMessage{DBClusterIdentifier: ptr(instance)}
			return r.Call(ctx, "FailoverDBCluster", in, &rds.FailoverDBClusterResult{})
		},
	}
)

func ptr[T any](v T) *T { return &v }

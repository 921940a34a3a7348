package visitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/dial"
	"howdah/internal/model/member"
)

// manners are the settings of the agent's sessions. Nothing waits long there: neither for locks, nor for
// answers, nor for standbys. What is made there is made again by the next primary, if that has not
// received it. What is said every other second stays out of the log, whatever users log, and whichever
// library logs it: where it is not loaded, nobody reads its settings.
var manners = map[string]string{
	"search_path": "pg_catalog", "lock_timeout": "100ms", "statement_timeout": "5s", "synchronous_commit": "local",
	"log_statement": "none", "log_duration": "off", "log_min_duration_statement": "-1", "log_min_duration_sample": "-1", "log_transaction_sample_rate": "0",
	"auto_explain.log_min_duration": "-1", "pgaudit.log": "none",
}

// Connect makes a session of rdsadmin's in a database of a member's server, with short timeouts, and of
// which nothing is logged.
func Connect(ctx context.Context, a *agent.Agent, target member.Assignment, database string) (*pgx.Conn, error) {
	config, err := dial.AdminConfig(a, target)
	if err != nil {
		return nil, err
	}
	config.Database = database
	maps.Copy(config.RuntimeParams, manners)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect as administrator to %q: %w", database, err)
	}
	return conn, nil
}

// Round does something in one database after the other, as Call does, with sessions of Connect, and gives
// each visit the time within. It returns the databases in which it was done. It ends early where a login
// is stuck, or ctx has ended. platform is a superuser's session elsewhere on the server.
func (v *Visitor) Round(ctx context.Context, a *agent.Agent, target member.Assignment, platform *pgx.Conn, all []postgres.Database,
	within time.Duration, do func(context.Context, *pgx.Conn) error,
) (done []uint32, err error) {
	for _, d := range all {
		ready, bad := v.visit(ctx, a, target, platform, d, within, do)
		if ready {
			done = append(done, d.OID)
		}
		if err = errors.Join(err, bad); ctx.Err() != nil || errors.Is(bad, ErrStuck) {
			break
		}
	}
	return done, err
}

func (v *Visitor) visit(ctx context.Context, a *agent.Agent, target member.Assignment, platform *pgx.Conn, d postgres.Database,
	within time.Duration, do func(context.Context, *pgx.Conn) error,
) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return v.Call(ctx, platform, d,
		func(ctx context.Context) (*pgx.Conn, error) { return Connect(ctx, a, target, d.Name) },
		func(conn *pgx.Conn) error { return do(ctx, conn) })
}

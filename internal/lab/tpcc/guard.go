package tpcc

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/seats"
	"howdah/internal/lab/tpcc/wire"
)

// writable returns an error if a server takes no writes.
func writable(s seats.Server) error {
	if s.Standby {
		return ErrStandby
	}
	if s.ReadOnly {
		return fmt.Errorf("%w: its transactions are read only", ErrStandby)
	}
	return nil
}

// fits returns ErrNoRoom if a server does not take so many more sessions.
func fits(s seats.Server, sessions int) error {
	if lacks := s.Lacks(sessions); lacks != "" {
		return fmt.Errorf("%w: %s", ErrNoRoom, lacks)
	}
	return nil
}

// askTime bounds how long questions before a run may take.
const askTime = 10 * time.Second

// look asks a server over a session of its own, which ends before the others begin.
func look(ctx context.Context, config *pgx.ConnConfig) (seats.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, wire.Prepared(config))
	if err != nil {
		return seats.Server{}, err
	}
	defer closeConn(conn)
	s, err := seats.Ask(ctx, conn)
	return s.Without(), err
}

// guard returns an error if a target cannot take its share of the users. Targets may lead to the same
// server.
func guard(ctx context.Context, targets []*pgx.ConnConfig, users int) error {
	servers := map[string]seats.Server{}
	sessions := map[string]int{}
	for i, target := range targets {
		s, err := look(ctx, target)
		if err == nil {
			err = writable(s)
		}
		if err != nil {
			return fmt.Errorf("target %s: %w", target.Host, err)
		}
		servers[s.Key] = s
		sessions[s.Key] += (users - i + len(targets) - 1) / len(targets)
	}
	for key, s := range servers {
		if err := fits(s, sessions[key]); err != nil {
			return err
		}
	}
	return nil
}

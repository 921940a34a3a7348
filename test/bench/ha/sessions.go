package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// eachKind is how many sessions are idle, and also how many wait for an answer.
const eachKind = 40

// sessions are clients that notice when they are cut off.
type sessions struct {
	all  sync.WaitGroup
	mu   sync.Mutex
	ends []time.Time // guarded by mu
}

// open opens idle sessions, which only listen, and sessions that wait for a query.
func (s *sessions) open(ctx context.Context, config *pgx.ConnConfig) error {
	for i := range 2 * eachKind {
		conn, err := pgx.ConnectConfig(ctx, config.Copy())
		if err != nil {
			return err
		}
		s.all.Go(func() {
			if i < eachKind {
				waitIdle(conn)
			} else {
				conn.Exec(ctx, "SELECT pg_sleep(600)")
			}
			s.mu.Lock()
			s.ends = append(s.ends, time.Now())
			s.mu.Unlock()
			conn.PgConn().Conn().Close()
		})
	}
	return nil
}

// waitIdle listens for what the server might say, as a driver's pool does.
func waitIdle(conn *pgx.Conn) {
	raw := conn.PgConn().Conn()
	one := make([]byte, 1)
	for {
		_, err := raw.Read(one)
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			continue
		}
		if err != nil {
			return
		}
	}
}

// wait returns when each session ended, for those that ended in time.
func (s *sessions) wait(within time.Duration) []time.Time {
	done := make(chan struct{})
	go func() { s.all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(within):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.ends...)
}

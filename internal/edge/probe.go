package edge

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/model/route"
)

const (
	// confirmEvery is the pause between two questions to a new primary whether it serves yet.
	confirmEvery = 5 * time.Millisecond
	// askTimeout is the timeout of one such question.
	askTimeout = time.Second
	// firstWriteTimeout is how long the edge waits for the first write after a failover.
	firstWriteTimeout = 30 * time.Second
)

// confirm waits until the elected member serves in its role. A primary must have left recovery; the
// leader of a database that follows must only answer. It returns false if ctx ended first.
func (e *Edge) confirm(ctx context.Context, r route.Route, name string) bool {
	for ctx.Err() == nil {
		conn, err := e.connect(ctx, r, name, nil)
		if err == nil {
			served := e.waitRole(ctx, conn, r.Follows)
			closeSoon(conn)
			if served {
				return true
			}
		}
		wait(ctx, confirmEvery)
	}
	return false
}

// waitRole asks on one connection until the member serves in its role, or the connection fails.
func (e *Edge) waitRole(ctx context.Context, conn *pgx.Conn, follows bool) bool {
	for ctx.Err() == nil {
		ask, cancel := context.WithTimeout(ctx, askTimeout)
		recovering := false
		err := conn.QueryRow(ask, "SELECT pg_is_in_recovery()").Scan(&recovering)
		cancel()
		if err != nil {
			return false
		}
		if follows || !recovering {
			return true
		}
		wait(ctx, confirmEvery)
	}
	return false
}

// firstWrite commits a WAL message through the new primary. The commit waits for the standbys, as
// any commit does. It returns when the commit was done, or the zero time if it failed.
func (e *Edge) firstWrite(ctx context.Context, r route.Route, name string) time.Time {
	ctx, cancel := context.WithTimeout(ctx, firstWriteTimeout)
	defer cancel()
	for ctx.Err() == nil {
		conn, err := e.connect(ctx, r, name, nil)
		if err == nil {
			_, err = conn.Exec(ctx, "SELECT pg_logical_emit_message(true, 'howdah', 'first write after a failover')")
			closeSoon(conn)
			if err == nil {
				return time.Now().UTC()
			}
		}
		wait(ctx, 10*confirmEvery)
	}
	return time.Time{}
}

// connect logs in to a member itself, not through the endpoint, with certificates on both sides.
// The server's notices go to notice, unless that is nil.
func (e *Edge) connect(ctx context.Context, r route.Route, name string, notice pgconn.NoticeHandler) (*pgx.Conn, error) {
	address := ""
	for _, m := range r.Members {
		if m.Name == name {
			address = m.Address
		}
	}
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("member %s has no address: %w", name, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", name, err)
	}
	config, err := pgx.ParseConfig("sslmode=disable user=rdsmon database=rdsadmin application_name=howdah-edge")
	if err != nil {
		return nil, fmt.Errorf("configure connection: %w", err)
	}
	config.Host, config.Port = host, uint16(port)
	config.TLSConfig = e.TLS.Clone()
	config.TLSConfig.ServerName = host
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.RuntimeParams["synchronous_commit"] = "on" // whatever the database's own default is
	config.OnNotice = notice
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return pgx.ConnectConfig(ctx, config)
}

func closeSoon(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	conn.Close(ctx)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

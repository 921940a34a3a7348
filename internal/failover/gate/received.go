package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// errReplays says that a standby may have WAL on its disk that it has not replayed since its start.
var errReplays = errors.New("it still replays what it had before its start")

// Both roles are the platform's, and log in by a member's certificate.
const (
	// replicator takes none of the connections that users may use up.
	replicator = "rdsrepladmin"
	// monitor sees what PostgreSQL's own processes wait for.
	monitor = "rdsmon"
)

// Receiver makes Config.Received for a client that shows a member's certificate.
//
// Patroni's position may be too low here. Patroni takes the place that the WAL receiver wrote last
// for the end of the WAL, and a receiver that reconnects begins again at the start of a segment.
// After a standby restarts, Patroni counts only what it has replayed since: WAL that the standby
// confirmed before, and still has on its disk, is missing from that.
func Receiver(client *tls.Config) func(context.Context, string) (int64, error) {
	return func(ctx context.Context, address string) (int64, error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		lsn, err := received(ctx, func(user string) (*pgx.ConnConfig, error) { return connection(address, user, client) })
		if err != nil {
			return 0, fmt.Errorf("ask %s what it received: %w", address, err)
		}
		return lsn, nil
	}
}

// connection returns how to connect to the platform's database at an address, which is a host and a
// port.
func connection(address, user string, client *tls.Config) (*pgx.ConnConfig, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig("sslmode=disable database=rdsadmin application_name=howdah-gate")
	if err != nil {
		return nil, err
	}
	config.Host, config.Port, config.User = host, uint16(port), user
	config.TLSConfig = client.Clone()
	config.TLSConfig.ServerName = host
	return config, nil
}

// receivedSQL reads two positions: the end of the received WAL and of the replayed WAL. The
// first is 0 until the server asks for WAL for the first time since its start, which it does
// when it has replayed all that it had.
const receivedSQL = `SELECT coalesce(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_receive_lsn(), '0/0'), 0)::bigint,
	coalesce(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_replay_lsn(), '0/0'), 0)::bigint`

// restingSQL tells whether the startup process waits for new WAL. It does so only when it has
// replayed all that it had. A standby without a primary to follow never asks for WAL, so
// receivedSQL alone cannot tell.
const restingSQL = `SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity
	WHERE backend_type = 'startup' AND wait_event IN ('RecoveryWalStream', 'RecoveryRetrieveRetryInterval'))`

// received returns where the WAL of a standby ends now, or an error if the standby cannot know.
func received(ctx context.Context, connect func(user string) (*pgx.ConnConfig, error)) (int64, error) {
	config, err := connect(replicator)
	if err != nil {
		return 0, err
	}
	config.RuntimeParams["replication"] = "database" // takes a WAL sender, not one of the connections that users may use up
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	received, replayed, err := position(ctx, config, "")
	if err != nil || received > 0 {
		return max(received, replayed), err
	}
	if config, err = connect(monitor); err != nil {
		return 0, err
	}
	_, replayed, err = position(ctx, config, restingSQL)
	return replayed, err
}

// position asks a standby for its positions. If condition is not empty and does not hold there,
// it returns errReplays.
func position(ctx context.Context, config *pgx.ConnConfig, condition string) (received, replayed int64, err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if condition != "" {
		var holds bool
		if err = conn.QueryRow(ctx, condition).Scan(&holds); err == nil && !holds {
			err = errReplays
		}
	}
	if err == nil {
		err = conn.QueryRow(ctx, receivedSQL).Scan(&received, &replayed)
	}
	return received, replayed, err
}

// address returns the host and port of a PostgreSQL, from the URL that its Patroni gives for it; ""
// if it gives none.
func address(connURL string) string {
	u, err := url.Parse(connURL)
	if err != nil || !slices.Contains([]string{"postgres", "postgresql"}, u.Scheme) {
		return ""
	}
	return u.Host
}

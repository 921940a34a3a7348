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

// errReplays: a standby has WAL on its disk that it has not looked at since its start.
var errReplays = errors.New("it still replays what it had before its start")

// Both roles are the platform's, and log in by a member's certificate.
const (
	// replicator takes none of the connections that users may use up.
	replicator = "rdsrepladmin"
	// monitor sees what PostgreSQL's own processes wait for.
	monitor = "rdsmon"
)

// Receiver answers Config.Received for a client that shows a member's certificate.
//
// Patroni's word is too little here. It takes the place that a WAL receiver has just
// written for all that was received, and one that connects again begins with its segment;
// and of a standby that was started anew it knows nothing but what has been replayed
// since: what that one had confirmed before, and has on its disk, is not in it.
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

// connection is to the platform's database at an address.
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

// receivedSQL: what was received counts from the first time in a server's life that it
// asked for WAL. It does that when it has replayed all that it had.
const receivedSQL = `SELECT coalesce(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_receive_lsn(), '0/0'), 0)::bigint,
	coalesce(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_replay_lsn(), '0/0'), 0)::bigint`

// restingSQL: the process that replays waits for WAL that it has not, which it does only
// when it has replayed all that it had. Who has no primary to follow never asks for any.
const restingSQL = `SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity
	WHERE backend_type = 'startup' AND wait_event IN ('RecoveryWalStream', 'RecoveryRetrieveRetryInterval'))`

// received is where the WAL of a standby ends, as of now: an error, if it does not know.
func received(ctx context.Context, connect func(user string) (*pgx.ConnConfig, error)) (int64, error) {
	config, err := connect(replicator)
	if err != nil {
		return 0, err
	}
	config.RuntimeParams["replication"] = "database" // of which there are others than users'
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

// position asks for a standby's, after a condition was true there, if there is one.
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

// address of a PostgreSQL, by the URL that its Patroni gives for it; "" if it gives none.
func address(connURL string) string {
	u, err := url.Parse(connURL)
	if err != nil || !slices.Contains([]string{"postgres", "postgresql"}, u.Scheme) {
		return ""
	}
	return u.Host
}

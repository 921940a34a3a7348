package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// leaving are the statements by which data that were copied from another database have nothing to do
// with it any more. A subscription asks its publisher by the name of a slot, and the other database goes
// on with that slot. Whoever reads it in its place takes changes away from it, and so does whoever drops
// the slot together with the subscription. The table is one for all databases. It is written itself, as
// ALTER SUBSCRIPTION has to be said in each of them, and event triggers of users would follow it there.
var leaving = []string{
	"SET allow_system_table_mods = on",
	"UPDATE pg_catalog.pg_subscription SET subenabled = false, subslotname = NULL WHERE subenabled OR subslotname IS NOT NULL",
	"SET allow_system_table_mods = off",
}

// LeaveSource makes data that were copied from another database independent of it: the next SetOwner
// sets the master user up, and no subscription asks its publisher for anything until its owner names a
// slot, and enables it. conn is as for SetOwner. It may be called again.
func LeaveSource(ctx context.Context, conn *pgx.Conn) error {
	for _, sql := range leaving {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("keep subscriptions from their publishers: %w", err)
		}
	}
	return ForgetOwner(ctx, conn)
}

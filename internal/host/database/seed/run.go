package seed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"howdah/internal/engine/pgbackrest"
)

// Command is the name of our command that Patroni runs in place of pg_basebackup.
const Command = "seed"

// Run makes the data of a standby by the order at a path, or else becomes pg_basebackup, with its
// arguments. It returns only if the data are made, or nobody wants them any more.
func Run(ctx context.Context, order, basebackup string, args []string, log *slog.Logger) error {
	return run(ctx, Maker{Patience: DefaultPatience, Log: log}, order, basebackup, args)
}

func run(ctx context.Context, m Maker, order, basebackup string, args []string) error {
	runtime.LockOSThread() // what it starts ends with this thread
	err := m.byOrder(ctx, order, args)
	if err == nil || ctx.Err() != nil {
		return err
	}
	m.Log.Warn("copy the primary: the repository will not do", "error", err)
	// It needs the room.
	if err := os.RemoveAll(filepath.Join(filepath.Dir(order), dataDir)); err != nil {
		return fmt.Errorf("remove what was made: %w", err)
	}
	err = syscall.Exec(basebackup, append([]string{basebackup}, args...), os.Environ())
	return fmt.Errorf("start %s: %w", basebackup, err)
}

var errArguments = errors.New("the arguments are not those of a copy")

func (m Maker) byOrder(ctx context.Context, path string, args []string) (err error) {
	if m.Order, err = await(ctx, path); err != nil {
		return err
	}
	if m.Engine, err = pgbackrest.At(m.Order.Program); err != nil {
		return err
	}
	m.Dir = filepath.Dir(path)
	if m.To, m.Conninfo = arguments(args); m.To == "" || m.Conninfo == "" {
		return errArguments
	}
	return m.Make(ctx)
}

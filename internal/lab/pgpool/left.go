package pgpool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrLeftOut says that pgpool has sessions without one of the servers, which it did not reach. It follows.
var ErrLeftOut = errors.New("pgpool left a server out, and gave its reads to the others")

// leftOut is how its log names the server that a session is without.
var leftOut = regexp.MustCompile(`failed to create a backend (\d+) connection`)

// Reached returns an error if a session that began since the last call is without one of the servers. pgpool
// itself tells nobody but its log.
func (p *Pool) Reached() error {
	file, err := os.OpenFile(filepath.Join(p.record.Directory, logFile), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("read pgpool's log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(p.read, io.SeekStart); err != nil {
		return fmt.Errorf("read pgpool's log: %w", err)
	}
	var names []string
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break // what is not whole yet is read the next time
		}
		if err != nil {
			return fmt.Errorf("read pgpool's log: %w", err)
		}
		p.read += int64(len(line))
		if name := p.leftOut(line); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: %s", ErrLeftOut, strings.Join(names, ", "))
	}
	return nil
}

// leftOut is the server that a line of the log says a session is without; "": none.
func (p *Pool) leftOut(line string) string {
	found := leftOut.FindStringSubmatch(line)
	if found == nil {
		return ""
	}
	if n, err := strconv.Atoi(found[1]); err == nil && n > 0 && n <= len(p.options.Readers) {
		return p.options.Readers[n-1].Name()
	}
	return "the writer"
}

// answerWithin is how long pgpool may take to say how it is.
const answerWithin = 10 * time.Second

// Selects counts the reads that each server has got, that of the writer first.
func (p *Pool) Selects(ctx context.Context) (all []int64, err error) {
	// It asks the servers, too, and waits for one that is just dying.
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	config := p.server.Config()
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("ask pgpool for its servers: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, "SHOW pool_nodes")
	if err != nil {
		return nil, fmt.Errorf("ask pgpool for its servers: %w", err)
	}
	nodes, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		return nil, fmt.Errorf("ask pgpool for its servers: %w", err)
	}
	for _, node := range nodes {
		n, err := strconv.ParseInt(fmt.Sprint(node["select_cnt"]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("ask pgpool for its servers: %w", err)
		}
		all = append(all, n)
	}
	return all, nil
}

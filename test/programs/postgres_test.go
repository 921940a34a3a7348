package programs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// pgbench makes its tables and runs its transactions, in all of the protocol's modes.
func TestPgbench(t *testing.T) {
	testkit.NeedProgram(t, "pgbench")
	i := given(t, "bench", true)
	i.runs(5*time.Minute, "/", i.environ("postgres"), "pgbench", "-i", "-s", "5", "-q", "--foreign-keys", "--partitions=4")
	// Without -n it would empty the history before each run.
	for _, mode := range []string{"simple", "extended", "prepared"} {
		out := i.runs(2*time.Minute, "/", i.environ("postgres"), "pgbench", "-n", "-c", "4", "-j", "2", "-T", "5", "-M", mode)
		if !strings.Contains(out, "number of failed transactions: 0 ") {
			t.Errorf("%s:\n%s", mode, out)
		}
	}
	const sums = `SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(bbalance) FROM pgbench_branches)
		AND (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history)`
	if same := i.ask("postgres", "SELECT ("+sums+")::text"); same != "true" {
		t.Error("the sums differ")
	}
}

// copySize is how much psql's \copy brings, and takes out again.
const copySize = 1 << 30

// psql's \copy of 1 GB into a table and out of it: what comes out is what went in.
func TestCopyOfAGigabyte(t *testing.T) {
	testkit.NeedProgram(t, "psql")
	// Where the test's files are in memory, they count as the instance's.
	i := givenWith(t, "copied", func(in *rds.CreateDBInstanceMessage) { in.DBInstanceClass = new("db.m5.large") })
	i.sql("postgres", "CREATE TABLE big (id bigint, text text)")
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(10*time.Minute))
	defer cancel()
	began := time.Now()
	in := exec.CommandContext(ctx, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", `\copy big FROM pstdin`)
	in.Env = i.environ("postgres")
	went, rows := sha256.New(), 0
	pipe, err := in.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	in.Stderr = &said
	if err := in.Start(); err != nil {
		t.Fatal(err)
	}
	to := bufio.NewWriterSize(io.MultiWriter(pipe, went), 1<<20)
	text := strings.Repeat("what is in a row ", 60)
	for size := 0; size < copySize && err == nil; rows++ {
		var n int
		n, err = fmt.Fprintf(to, "%d\t%x %s\n", rows, sha256.Sum256([]byte{byte(rows), byte(rows >> 8), byte(rows >> 16)}), text)
		size += n
	}
	if err == nil {
		err = to.Flush()
	}
	pipe.Close()
	if ended := in.Wait(); err != nil || ended != nil {
		t.Fatalf("%v, %v\n%s", err, ended, said.String())
	}
	t.Logf("1 GB in %s", time.Since(began).Round(time.Second/10))
	if n := i.ask("postgres", "SELECT count(*)::text FROM big"); n != fmt.Sprint(rows) {
		t.Errorf("%s of %d rows are there", n, rows)
	}

	began = time.Now()
	out := exec.CommandContext(ctx, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", `\copy big TO pstdout`)
	out.Env = i.environ("postgres", "PGOPTIONS=-c synchronize_seqscans=off")
	came := sha256.New()
	out.Stdout, out.Stderr = came, &said
	if err := out.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	t.Logf("and out in %s", time.Since(began).Round(time.Second/10))
	if !bytes.Equal(went.Sum(nil), came.Sum(nil)) {
		t.Error("what came out is not what went in")
	}
}

package pgbench

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/lab/heard"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Second{
		"progress: 1790000000.250 s, 9534.7 tps, lat 1.676 ms stddev 0.877, 0 failed": {At: time.UnixMilli(1790000000250).UTC(), TPS: 9534.7, Latency: 1.676, Stddev: 0.877},
		"progress: 1790000001.001 s, 0.0 tps, lat 0.000 ms stddev 0.000, 3 failed":    {At: time.UnixMilli(1790000001001).UTC(), Failed: 3},
		"progress: 1790000001.001 s, 0.0 tps, lat -nan ms stddev -nan, 0 failed":      {At: time.UnixMilli(1790000001001).UTC()},
		"progress: 1790000002.000 s, 49.9 tps, lat 2.5 ms stddev 0.5, 1 failed, lag 0.104 ms, 7 skipped, 2 retried, 4 retries": {
			At: time.UnixMilli(1790000002000).UTC(), TPS: 49.9, Latency: 2.5, Stddev: 0.5, Failed: 1,
		},
	} {
		if got, ok := ParseProgress(line); !ok || got != want {
			t.Errorf("%s: %+v, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "progress: 5.0 s, 1 tps", "pgbench: error: client 3 script 0 aborted in command 4", "starting vacuum...end."} {
		if got, ok := ParseProgress(line); ok {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

const twoScripts = `pgbench (15.20 (Debian 15.20-0+deb12u1))
transaction type: multiple scripts
scaling factor: 10
query mode: prepared
number of clients: 16
number of threads: 2
maximum number of tries: 1
duration: 10 s
number of transactions actually processed: 400530
number of failed transactions: 7 (0.002%)
number of transactions above the 50.0 ms latency limit: 12/400530 (0.003%)
latency average = 0.399 ms
latency stddev = 0.745 ms
initial connection time = 21.600 ms
tps = 40053.412 (without initial connection time)
SQL script 1: <builtin: TPC-B (sort of)>
 - weight: 1 (targets 4.8% of total)
 - 19077 transactions (4.8% of total, tps = 1907.3)
 - number of failed transactions: 7 (0.037%)
 - latency average = 2.1 ms
 - latency stddev = 1.9 ms
SQL script 2: <builtin: select only>
 - weight: 20 (targets 95.2% of total)
 - 381453 transactions (95.2% of total, tps = 38146.1)
 - latency average = 0.31 ms
`

func TestTheSummaryOfARun(t *testing.T) {
	t.Parallel()
	var r Result
	if err := r.summary(twoScripts); err != nil {
		t.Fatal(err)
	}
	if r.Transactions != 400530 || r.Failed != 7 || r.Late != 12 || r.TPS != 40053.412 || r.Latency != 0.399 || r.Connecting != 21600*time.Microsecond {
		t.Errorf("%+v", r)
	}
	want := []ScriptResult{{"<builtin: TPC-B (sort of)>", 19077, 1907.3, 2.1}, {"<builtin: select only>", 381453, 38146.1, 0.31}}
	if !slices.Equal(r.Scripts, want) {
		t.Errorf("%+v", r.Scripts)
	}
	for _, text := range []string{"", "tps = 3", "number of transactions actually processed: 3"} {
		if err := new(Result).summary(text); !errors.Is(err, ErrSays) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWhatItSaysWhileItRuns(t *testing.T) {
	t.Parallel()
	var r Result
	told := 0
	r.listen(strings.NewReader(`starting vacuum...end.
progress: 1790000000.250 s, 100.0 tps, lat 1.0 ms stddev 0.8, 0 failed
pgbench: error: client 3 script 0 aborted in command 4 query 0: FATAL:  terminating connection
progress: 1790000001.250 s, 0.0 tps, lat -nan ms stddev -nan, 0 failed
pgbench: error: Run was aborted; the above results are incomplete.
`), func(Second) { told++ })
	if told != 2 || len(r.Seconds) != 2 || r.Aborted != 1 || len(r.Messages) != 2 || !strings.Contains(r.Messages[0], "client 3") {
		t.Errorf("told %d, %+v", told, r)
	}
}

// A line without an end is left out but for its begin, and what follows is read: pgbench would wait otherwise.
func TestALongLine(t *testing.T) {
	t.Parallel()
	var r Result
	long := "pgbench: NOTICE: " + strings.Repeat("x", 1<<20)
	r.listen(strings.NewReader(long+"\nprogress: 1790000000.250 s, 100.0 tps, lat 1.0 ms stddev 0.8, 0 failed\n"+strings.Repeat(long+"\n", 3*mostMessages)), nil)
	if len(r.Seconds) != 1 || len(r.Messages) != mostMessages || len(r.Messages[0]) > heard.MostText {
		t.Errorf("%d seconds, %d messages", len(r.Seconds), len(r.Messages))
	}
}

func TestTimesOfTransactions(t *testing.T) {
	t.Parallel()
	r, err := ReadTimes(t.TempDir(), 1)
	if err != nil || r.All.TotalCount() != 0 {
		t.Errorf("of nothing: %+v, %v", r, err)
	}
	times := Times{All: r.All, Scripts: append(r.Scripts, r.Scripts[0])}
	err = times.read(strings.NewReader("0 1 1500 0 1790000000 1\n3 9 0 0 1790000000 2 17\n1 4 failed 0 1790000000 3\n2 2 skipped 0 1790000000 4 5\n0 2 99000000 0 1790000001 5\n"))
	if err != nil || times.All.TotalCount() != 3 || times.Failed != 1 || times.Skipped != 1 || times.All.Max() < 59_000_000 || times.All.Min() != 1 {
		t.Errorf("%d, %d, %d, %v", times.All.TotalCount(), times.Failed, times.Skipped, err)
	}
	for _, line := range []string{"", "1 2 3", "0 1 x 0 1 2", "0 1 5 2 1 2", "0 1 5 -1 1 2"} {
		if err := times.add(line); !errors.Is(err, ErrLog) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	o := Options{
		Scripts: []Script{{Builtin: "tpcb-like", Weight: 1}, {File: "/tmp/x.sql", Weight: 20}}, Clients: 16, Threads: 2, Time: 600 * time.Second, Protocol: "prepared",
		Rate: 250.5, Limit: 50 * time.Millisecond, Sample: 0.25, Seed: 7, Dir: "/tmp/run",
	}
	want := "-c 16 -j 2 -P 1 --progress-timestamp -M prepared -T 600 -n -b tpcb-like@1 -f /tmp/x.sql@20 -R 250.5 -L 50 --random-seed=7 -l --log-prefix=/tmp/run/transactions --sampling-rate=0.25"
	if got := strings.Join(o.Arguments(), " "); got != want {
		t.Errorf("%s", got)
	}
	o = Options{Scripts: []Script{{Builtin: "select-only"}}, Clients: 1, Transactions: 1000, Protocol: "simple", Vacuum: true}
	if got := strings.Join(o.Arguments(), " "); got != "-c 1 -j 1 -P 1 --progress-timestamp -M simple -t 1000 -b select-only@1" {
		t.Errorf("%s", got)
	}
}

// A run in which nothing was done in time says no rate, and is understood.
func TestARunWithoutATransaction(t *testing.T) {
	t.Parallel()
	var r Result
	if err := r.summary("number of clients: 8\nduration: 1 s\nnumber of transactions actually processed: 0\n"); err != nil || r.TPS != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := r.summary("number of transactions actually processed: 5\n"); !errors.Is(err, ErrSays) {
		t.Error(err)
	}
}

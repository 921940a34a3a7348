package drivers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// domain has the names of endpoints which have addresses alone. The programs find them in an /etc/hosts
	// of their own.
	domain = "drivers.test"
	// zoneName is the zone of a home whose endpoints have names.
	zoneName = "howdah.internal"
)

// A language has a program that does the same as those of the others (programs/), and the names that
// its wrapper gives its plugins and dialects.
type language struct {
	name            string
	command         func(t *testing.T) []string
	failover, split string
	detects         string // plugins that need not be told the dialect
	unwatched       string // failover without host monitoring
	monitor         string // host monitoring alone
	watch           string // its settings, so that it looks soon
	multiAZ         string // the dialect of Multi-AZ DB clusters
	iam             string
	iamInZone       bool // it takes hosts of RDS's own form alone, as names of a zone can be made to look
}

var languages = []language{
	{
		name: "java", command: java, failover: "initialConnection,auroraConnectionTracker,failover2,efm2", split: "readWriteSplitting,failover2,efm2",
		detects: "failover2,efm2", unwatched: "initialConnection,auroraConnectionTracker,failover2", monitor: "efm2", multiAZ: "rds-multi-az-pg-cluster", iam: "iam,failover2",
		watch: "failureDetectionTime=1000;failureDetectionInterval=500;failureDetectionCount=3;monitoring-connectTimeout=1;monitoring-socketTimeout=1",
	},
	{
		name: "python", command: python, failover: "failover_v2,host_monitoring_v2", split: "read_write_splitting,failover_v2,host_monitoring_v2",
		detects: "failover_v2,host_monitoring_v2", unwatched: "failover_v2", iam: "iam,failover_v2", iamInZone: true, monitor: "host_monitoring_v2", multiAZ: "multi-az-pg",
		watch: "failure_detection_time_ms=1000;failure_detection_interval_ms=500;failure_detection_count=3;monitoring-connect_timeout=1;monitoring-socket_timeout=1",
	},
	{
		name: "node", command: node, failover: "failover2,efm2", split: "readWriteSplitting,failover2,efm2",
		detects: "failover2,efm2", unwatched: "failover2", monitor: "efm2", multiAZ: "rds-multi-az-pg", iam: "iam,failover2",
		watch: "failureDetectionTime=1000;failureDetectionInterval=500;failureDetectionCount=3;monitoring_query_timeout=1000",
	},
}

func python(*testing.T) []string {
	return []string{filepath.Join(installed, "python/bin/python"), "programs/program.py"}
}

func java(t *testing.T) []string {
	t.Helper()
	classes := t.TempDir()
	jars := filepath.Join(installed, "java", "*")
	if out, err := exec.CommandContext(t.Context(), "javac", "-cp", jars, "-d", classes, "programs/Program.java").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return []string{"java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", jars + ":" + classes, "Program"}
}

// node finds modules beside the program's file alone.
func node(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("programs/program.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "program.mjs"), text, 0o600)
	}
	if err == nil {
		err = os.Symlink(filepath.Join(installed, "node", "node_modules"), filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return []string{"node", filepath.Join(dir, "program.mjs")}
}

// said is a line of a program.
type said struct {
	what, more string // done, failed or is
	at         time.Time
}

// program is one that runs.
type program struct {
	t     *testing.T
	name  string
	input io.Closer
	cmd   *exec.Cmd
	over  chan struct{}

	mu    sync.Mutex
	lines []said   // guarded by mu
	other []string // guarded by mu; what is no line of the program's own
}

// ownFiles puts the files of the environment in the place of the system's, for one program.
const ownFiles = `[ -z "$DB_HOSTS" ] || mount --bind "$DB_HOSTS" /etc/hosts || exit 1
[ -z "$DB_RESOLV" ] || mount --bind "$DB_RESOLV" /etc/resolv.conf || exit 1
exec "$@"`

// start runs a command with this in its environment. DB_HOSTS and DB_RESOLV name files which it finds in the
// place of /etc/hosts and /etc/resolv.conf.
func start(t *testing.T, name string, command, environment []string) *program {
	t.Helper()
	p := &program{t: t, name: name, over: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	args := append([]string{"-m", "sh", "-c", ownFiles, "sh"}, command...)
	p.cmd = exec.CommandContext(ctx, "unshare", args...)
	p.cmd.Env = append(os.Environ(), environment...)
	input, errIn := p.cmd.StdinPipe()
	output, errOut := p.cmd.StdoutPipe()
	if errIn != nil || errOut != nil {
		t.Fatal(errIn, errOut)
	}
	p.input, p.cmd.Stderr = input, p.cmd.Stdout
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go p.read(output)
	t.Cleanup(func() {
		cancel()
		<-p.over
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", name, p.end())
		}
	})
	return p
}

func (p *program) read(output io.Reader) {
	defer close(p.over)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		when, more, _ := strings.Cut(rest, " ")
		ms, err := strconv.ParseInt(when, 10, 64)
		p.mu.Lock()
		if err == nil && (what == "done" || what == "failed" || what == "is") {
			p.lines = append(p.lines, said{what, more, time.UnixMilli(ms)})
		} else {
			p.other = append(p.other, lines.Text())
		}
		p.mu.Unlock()
	}
}

// end is what it said last.
func (p *program) end() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := strings.Join(p.other[max(0, len(p.other)-40):], "\n")
	for _, l := range p.lines[max(0, len(p.lines)-10):] {
		text += fmt.Sprintf("\n%s %s %s", l.at.Format(time.TimeOnly), l.what, l.more)
	}
	return text
}

// all is what it said so far that begins with a word.
func (p *program) all(what string) []said {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []said
	for _, l := range p.lines {
		if l.what == what {
			found = append(found, l)
		}
	}
	return found
}

// doneAfter is when it first did something after a moment.
func (p *program) doneAfter(at time.Time) (time.Time, error) {
	for _, l := range p.all("done") {
		if l.at.After(at) {
			return l.at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s did nothing after %s: %s", p.name, at.Format(time.TimeOnly), p.end())
}

// finish waits until it ends by itself, once its input has ended.
func (p *program) finish(within time.Duration) {
	p.t.Helper()
	_ = p.input.Close()
	select {
	case <-p.over:
	case <-time.After(within):
		p.t.Errorf("%s does not end: %s", p.name, p.end())
	}
}

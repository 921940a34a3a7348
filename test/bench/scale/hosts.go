package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/testkit/fleet"
)

// politeness is the nice value of the pretended hosts while calls are measured. In truth they would
// be other machines, so if CPUs are short, the control plane and its clients go first. While
// thousands of databases are made, they must not: hosts that are not heard for long are lost.
const politeness = 10

// The process of the hosts prints these words, one on each line, with what follows.
const (
	sayReady   = "ready"
	sayServing = "serving" // how many databases serve
	sayTold    = "told"    // the scope of a database whose second password a host was given
)

// pretend is the process of the pretended hosts. It ends when its standard input does. A line there
// makes it report new positions, and go last.
func pretend(args []string) error {
	flags := flag.NewFlagSet("hosts", flag.ExitOnError)
	dir := flags.String("home", "", "the home")
	number := flags.Int("n", 0, "how many hosts")
	busy := flags.Float64("busy", 0, "see bench-scale")
	if err := flags.Parse(args); err != nil {
		return err
	}
	debug.SetGCPercent(400) // their garbage is nobody's business
	h, err := home.Open(*dir)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	say := sayer()
	f, err := fleet.Start(ctx, fleet.Config{Home: h, Hosts: *number, Zones: []string{"a", "b", "c"}, Assigned: func(_ string, a member.Assignment) {
		if a.Owner.Serial >= 2 {
			say(sayTold, a.Scope)
		}
	}})
	if err != nil {
		return err
	}
	defer f.Wait()
	defer cancel()
	say(sayReady, "")
	asked := make(chan struct{})
	go func() {
		in := bufio.NewScanner(os.Stdin)
		if in.Scan() {
			goLast()
			close(asked)
		}
		for in.Scan() {
		}
		cancel()
	}()
	go write(ctx, f, *busy, asked)
	last := -1
	for pause(ctx, 50*time.Millisecond) {
		if n := f.Serving(); n != last {
			say(sayServing, strconv.Itoa(n))
			last = n
		}
	}
	return nil
}

// goLast makes all threads of this process go after others, and so all threads that they make.
func goLast() {
	threads, err := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		err = errors.Join(err, syscall.Setpriority(syscall.PRIO_PROCESS, id, politeness))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-scale: the pretended hosts do not go last:", err)
	}
}

// sayer returns a function that writes whole lines, whoever calls it.
func sayer() func(word, what string) {
	var mu sync.Mutex
	return func(word, what string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(word, what)
	}
}

// write makes a share of the databases report new positions, each every ten seconds, once that is
// asked for.
func write(ctx context.Context, f *fleet.Fleet, busy float64, asked <-chan struct{}) {
	select {
	case <-asked:
	case <-ctx.Done():
		return
	}
	all := f.Scopes()
	all = all[:int(float64(len(all))*busy)]
	for n := 0; pause(ctx, 100*time.Millisecond); n++ {
		var now []string
		for i := n % 100; i < len(all); i += 100 {
			now = append(now, all[i])
		}
		f.Write(now)
	}
}

// hosts are the pretended hosts, as the benchmark sees them.
type hosts struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	serving atomic.Int64
}

// startHosts starts the hosts and waits until they are there. told is called with the scope of each
// database whose second password reached a host.
func startHosts(dir string, n int, busy float64, told func(scope string)) (*hosts, error) {
	cmd, in, out, err := begin("hosts", "-home", dir, "-n", strconv.Itoa(n), "-busy", fmt.Sprint(busy))
	if err != nil {
		return nil, fmt.Errorf("start the pretended hosts: %w", err)
	}
	h := &hosts{cmd: cmd, in: in}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || strings.TrimSpace(lines.Text()) != sayReady {
		h.stop()
		return nil, fmt.Errorf("the pretended hosts did not start: %q", lines.Text())
	}
	go func() {
		for lines.Scan() {
			switch word, what, _ := strings.Cut(lines.Text(), " "); word {
			case sayTold:
				told(what)
			case sayServing:
				n, _ := strconv.Atoi(what)
				h.serving.Store(int64(n))
			}
		}
	}()
	return h, nil
}

// write has the hosts report new positions from now on, and go last.
func (h *hosts) write() error {
	_, err := fmt.Fprintln(h.in, "write")
	return err
}

// stop ends them.
func (h *hosts) stop() {
	_ = h.in.Close()
	_ = h.cmd.Wait() // that it was told to end is no error
}

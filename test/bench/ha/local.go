package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"howdah/internal/failover/postmortem"
	"howdah/internal/identity/home"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/rig"
)

// A client on the primary's own host still reaches the primary when the host is cut off. What is
// acknowledged to it after the fence would be lost, so nothing may be.

// localArgs are passed to the writer on the host through its standard input.
type localArgs struct {
	Home  string `json:"home"`
	Host  string `json:"host"`
	Port  int    `json:"port"`
	Table string `json:"table"`
	First int    `json:"first"`
}

// localWriter is the program on the host. It writes until it is told to end, and prints each
// acknowledgement.
func localWriter([]string) error {
	var in localArgs
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return fmt.Errorf("read arguments: %w", err)
	}
	h, err := home.Open(in.Home)
	if err != nil {
		return err
	}
	config, err := (&rig.Rig{Home: h}).ConfigAt(in.Host, in.Port)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	out := bufio.NewWriter(os.Stdout)
	var mu sync.Mutex
	l := &ack.Load{Config: config, Table: in.Table, Writers: 2, First: in.First, Pause: 2 * time.Millisecond, OnAck: func(a ack.Ack) {
		mu.Lock()
		defer mu.Unlock()
		text, err := json.Marshal(a)
		if err == nil {
			out.Write(append(text, '\n'))
			out.Flush()
		}
	}}
	l.Run(ctx)
	return nil
}

// local is a running writer on a host.
type local struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	acks  []ack.Ack
	ended chan struct{}
}

func startLocal(r *rig.Rig, m rig.Member, table string) (*local, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := r.HostCommand(m.ZoneLetter(), self, "writer")
	l := &local{cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	in, err := json.Marshal(localArgs{Home: r.Home.Dir, Host: m.Address, Port: m.Port, Table: table, First: 100})
	if err != nil {
		return nil, err
	}
	l.cmd.Stdin, l.cmd.Stderr = strings.NewReader(string(in)), os.Stderr
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(l.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var a ack.Ack
			if json.Unmarshal(lines.Bytes(), &a) == nil {
				l.mu.Lock()
				l.acks = append(l.acks, a)
				l.mu.Unlock()
			}
		}
	}()
	return l, nil
}

func (l *local) stop() []ack.Ack {
	l.cmd.Process.Signal(syscall.SIGTERM)
	<-l.ended
	l.cmd.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}

const (
	linkCutRow = "write outage, host lost: link cut, its local clients write on"
	afterFence = "  of these, acknowledged by the lost primary after the fence"
)

// linkCut measures a primary whose host is cut off from everything but its own
// clients.
func linkCut(ctx context.Context, b *bench, r *rig.Rig) error {
	if err := r.Create(ctx, instance, true); err != nil {
		return err
	}
	for i := range b.runs {
		if err := b.linkCut(ctx, r); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	return nil
}

func (b *bench) linkCut(ctx context.Context, r *rig.Rig) error {
	database, err := r.Database(ctx, instance)
	if err != nil {
		return err
	}
	if err := r.Wait(patience, func() error { return r.InSync(ctx, database, 1) }); err != nil {
		return err
	}
	old, err := r.Leader(ctx, database)
	if err != nil {
		return err
	}
	table := fmt.Sprintf("acks_%d", time.Now().UnixNano())
	l, stop, err := startLoad(ctx, r, multiAZ, table)
	if err != nil {
		return err
	}
	defer stop()
	onHost, err := startLocal(r, old, table)
	if err != nil {
		return err
	}
	sleep(ctx, before)
	known := len(mustFailovers(ctx, r, database))
	struck := time.Now()
	if err := r.CutLink(old.ZoneLetter()); err != nil {
		return errors.Join(err, r.HealLink(old.ZoneLetter()))
	}
	err = r.Wait(patience, func() error {
		if len(mustFailovers(ctx, r, database)) <= known {
			return errors.New("no failover yet")
		}
		return writtenSince(l, struck, after)
	})
	stop()
	localAcks := onHost.stop()
	err = errors.Join(err, r.HealLink(old.ZoneLetter()))
	if err != nil {
		return err
	}
	b.failovers++
	b.add(linkCutRow, "3", "s", ack.Outage(l.Acks(), struck).Seconds())
	return b.checkLocal(ctx, l, localAcks, lastOf(mustFailovers(ctx, r, database)))
}

// checkLocal counts what the lost primary acknowledged after the fence. It checks that everything
// that the primary ever acknowledged is there.
func (b *bench) checkLocal(ctx context.Context, l *ack.Load, local []ack.Ack, record postmortem.Record) error {
	late := 0
	for _, a := range local {
		if a.At.After(record.Fenced) {
			late++
		}
	}
	b.add(afterFence, "0", "rows", float64(late))
	missing, err := ack.Missing(ctx, l.Config, l.Table, local)
	if err != nil {
		return err
	}
	b.acks += len(local)
	b.lost += len(missing)
	if len(local) == 0 {
		return errors.New("the clients on the host wrote nothing: nothing was proved")
	}
	return b.check(ctx, l)
}

func mustFailovers(ctx context.Context, r *rig.Rig, database string) []postmortem.Record {
	all, err := r.Failovers(ctx, database)
	if err != nil {
		return nil
	}
	return all
}

func lastOf(all []postmortem.Record) postmortem.Record {
	if len(all) == 0 {
		return postmortem.Record{}
	}
	return all[len(all)-1]
}

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"howdah/internal/state"
	"howdah/internal/testkit/rig"
)

// setting was done when the rig started.
var setting = map[string]func(context.Context, *Soak, deed) error{
	"network": func(context.Context, *Soak, deed) error { return nil },
}

// faults break something, and mend it again before they return.
var faults = map[string]func(context.Context, *Soak, deed) error{
	"kill-postgres": onMember(func(_ context.Context, _ deed, m rig.Member) error { return m.KillPostgres() }),
	"kill-patroni":  onMember(func(_ context.Context, _ deed, m rig.Member) error { return m.KillPatroni() }),
	"freeze-postgres": onMember(func(ctx context.Context, d deed, m rig.Member) error {
		frozen, err := m.FreezePostgres()
		return errors.Join(err, passes(ctx, d.seconds(2)), frozen.Thaw())
	}),
	"freeze-patroni": onMember(func(ctx context.Context, d deed, m rig.Member) error {
		frozen, err := m.FreezeOnlyPatroni()
		return errors.Join(err, passes(ctx, d.seconds(2)), frozen.Thaw())
	}),
	"freeze-host": onHost(func(ctx context.Context, s *Soak, d deed, zone string) error {
		thaw, err := s.Rig.FreezeHost(zone)
		return errors.Join(err, passes(ctx, d.seconds(2)), thaw())
	}),
	"lose-host": onHost(func(ctx context.Context, s *Soak, d deed, zone string) error {
		err := s.Rig.LoseHost(zone)
		return errors.Join(err, passes(ctx, d.seconds(2)), s.Rig.ReturnHost(zone))
	}),
	"hang-disk": onHost(func(ctx context.Context, s *Soak, d deed, zone string) error {
		thaw, err := rig.DiskAt(s.Rig.HostDir(zone)).Freeze()
		if err != nil {
			return err
		}
		return errors.Join(passes(ctx, d.seconds(2)), thaw())
	}),
	"kill-engine": killEngine,
	"part":        part,
	"pause":       pause,
	"fill-etcd":   fillEtcd,
	"drain":       drain,
	"kill-part":   killPart, "freeze-part": freezePart, "upgrade": upgrade,
	"cancel": sessions("pg_cancel_backend"), "terminate": sessions("pg_terminate_backend"),
}

// seconds returns how long a fault lasts, which one of its words says.
func (d deed) seconds(word int) time.Duration {
	n, err := strconv.Atoi(d.Word(word))
	if err != nil {
		return time.Second
	}
	return time.Duration(n) * time.Second
}

// member returns the primary, or a standby, of the database that a fault names. Another step of the
// round may be working on the database, so there may be none for a while, or none any more.
func (s *Soak) member(ctx context.Context, d deed) (rig.Member, error) {
	serial := d.database(1).Serial
	var found rig.Member
	err := s.Rig.Wait(memberWithin, func() error {
		own := s.database(serial)
		if own == nil {
			return errNotThere
		}
		leader, err := s.Rig.Leader(ctx, own.id)
		if err != nil || d.Word(0) == "primary" {
			found = leader
			return err
		}
		all, err := s.Rig.Members(ctx, own.id)
		for _, m := range all {
			if m.Name != leader.Name {
				found = m
				return nil
			}
		}
		return errors.Join(err, errNoStandby)
	})
	return found, err
}

// fillWithin is how long it may take to fill etcd.
const fillWithin = 20 * time.Second

// memberWithin is how long a fault waits for the member that it is to hit.
const memberWithin = 10 * time.Second

var (
	errNoStandby = errors.New("no standby")
	errNotThere  = errors.New("no such database yet, or not any more")
)

// onMember returns a fault of a member. If another step took the member away meanwhile, there is
// nothing to break.
func onMember(do func(context.Context, deed, rig.Member) error) func(context.Context, *Soak, deed) error {
	return func(ctx context.Context, s *Soak, d deed) error {
		m, err := s.member(ctx, d)
		if err == nil {
			err = do(ctx, d, m)
		}
		if err != nil {
			s.Log("  %s: nothing broken: %v", d.Do(), err)
		}
		return nil
	}
}

func onHost(do func(context.Context, *Soak, deed, string) error) func(context.Context, *Soak, deed) error {
	return func(ctx context.Context, s *Soak, d deed) error {
		m, err := s.member(ctx, d)
		if err != nil {
			s.Log("  %s: nothing broken: %v", d.Do(), err)
			return nil
		}
		return do(ctx, s, d, m.ZoneLetter())
	}
}

// part cuts a host off from a side of its network.
func part(ctx context.Context, s *Soak, d deed) error {
	m, err := s.member(ctx, d)
	if err != nil {
		s.Log("  %s: nothing broken: %v", d.Do(), err)
		return nil
	}
	zone := m.ZoneLetter()
	if d.Word(2) == "all" {
		return errors.Join(s.Rig.CutLink(zone), passes(ctx, d.seconds(3)), s.Rig.HealLink(zone))
	}
	return errors.Join(s.Rig.Part(zone, sides(d.Word(2))...), passes(ctx, d.seconds(3)), s.Rig.Part(zone))
}

func sides(text string) []rig.Side {
	var all []rig.Side
	for _, name := range strings.Split(text, "+") {
		name, way, _ := strings.Cut(name, "-")
		side := map[string]rig.Side{"control": rig.Control(), "clients": rig.Clients(), "peers": rig.Peers()}[name]
		switch way {
		case "deaf":
			side = side.Deaf()
		case "mute":
			side = side.Mute()
		}
		all = append(all, side)
	}
	return all
}

// killEngine kills every process of the engine of backups as soon as it is seen, for as long as the
// step says.
func killEngine(ctx context.Context, s *Soak, d deed) error {
	for until := time.Now().Add(d.seconds(0)); time.Now().Before(until); {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		for _, path := range lines {
			line, err := os.ReadFile(path)
			program, _, _ := strings.Cut(string(line), "\x00")
			pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err == nil && bad == nil && filepath.Base(program) == "pgbackrest" && strings.Contains(string(line), s.Rig.Dir) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
		if err := passes(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// drain empties a host as far as that is possible, and then lets it have members again.
func drain(ctx context.Context, s *Soak, d deed) error {
	host := "zone-" + d.Word(0)
	err := s.Rig.Wait(stepWithin, func() error {
		text, err := s.howdah(ctx, "host", "drain", host)
		if err != nil && strings.Contains(text, "as far as possible") {
			// A database with a member in every zone cannot leave one.
			err = nil
		}
		return err
	})
	return errors.Join(err, s.Rig.Wait(stepWithin, func() error {
		_, err := s.howdah(ctx, "host", "undrain", host)
		return err
	}))
}

// howdah runs the command line on the home.
func (s *Soak) howdah(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*stepWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Rig.Binary, append(args, "--home", s.Rig.Home.Dir)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("howdah %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// allIsWell returns nil once status says so.
func (s *Soak) allIsWell(ctx context.Context) error {
	text, err := s.howdah(ctx, "status", "--check")
	if err == nil && !strings.Contains(text, "all is well") {
		err = fmt.Errorf("status says %s", text)
	}
	return err
}

// part returns the name of a part in this rig. With addresses that move, each host has an edge.
func (s *Soak) part(name string) string {
	if name == "edge" && s.Rig.Moving {
		return "edge-a"
	}
	return name
}

func killPart(ctx context.Context, s *Soak, d deed) error {
	name := s.part(d.Word(0))
	s.Rig.KillPart(name)
	return errors.Join(passes(ctx, d.seconds(1)), s.Rig.StartPart(name))
}

func freezePart(ctx context.Context, s *Soak, d deed) error {
	pid := s.Rig.PID(s.part(d.Word(0)))
	return errors.Join(syscall.Kill(pid, syscall.SIGSTOP), passes(ctx, d.seconds(1)), syscall.Kill(pid, syscall.SIGCONT))
}

// upgrade restarts all of Howdah's own processes, one after the other, from another build
// of the program.
func upgrade(_ context.Context, s *Soak, _ deed) error {
	if s.Upgrade != "" {
		s.Rig.Binary, s.Upgrade = s.Upgrade, s.Rig.Binary
	}
	for _, name := range s.Rig.Parts() {
		s.Rig.KillPart(name)
		if err := s.Rig.StartPart(name); err != nil {
			return err
		}
	}
	return nil
}

// filler is the key that etcd is filled with.
const filler = state.AttemptRoot + "filler"

// fillEtcd keeps etcd full for as long as the step says, and then makes room.
func fillEtcd(ctx context.Context, s *Soak, d deed) error {
	limited, cancel := context.WithTimeout(ctx, d.seconds(0)+fillWithin)
	defer cancel()
	value := strings.Repeat("x", 256<<10)
	var full time.Time
	for limited.Err() == nil && (full.IsZero() || time.Since(full) < d.seconds(0)) {
		_, err := s.Rig.Store.Client.Put(limited, filler, value)
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace) && full.IsZero():
			full = time.Now()
		case err != nil:
			_ = passes(limited, 10*time.Millisecond)
		}
	}
	if full.IsZero() {
		s.Log("  %s: it was never full", d.Do())
	}
	// It was one key, so history is what fills etcd. What was refused is written once there is
	// room.
	return s.Rig.Wait(stepWithin, func() error {
		_, err := s.Rig.Store.Client.Delete(ctx, filler)
		_, mended := s.howdah(ctx, "etcd", "mend")
		return errors.Join(err, mended)
	})
}

// sessions returns a fault that cancels or ends the writers' sessions of a database all the time.
func sessions(function string) func(context.Context, *Soak, deed) error {
	return func(ctx context.Context, s *Soak, d deed) error {
		ctx, cancel := context.WithTimeout(ctx, d.seconds(1))
		defer cancel()
		config, err := s.config(ctx, d.before, d.database(0))
		if err != nil {
			return nil // another step of the round has the database away
		}
		sql := fmt.Sprintf("SELECT %s(pid) FROM pg_stat_activity WHERE application_name = '%s'", function, writerName)
		for ctx.Err() == nil {
			s.interrupt(ctx, config, sql)
			_ = passes(ctx, askEvery)
		}
		return nil
	}
}

// interrupt does so until its own session is lost.
func (s *Soak) interrupt(ctx context.Context, config *pgx.ConnConfig, sql string) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return
		}
		_ = passes(ctx, 5*time.Millisecond)
	}
}

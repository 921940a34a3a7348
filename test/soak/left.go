package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/state"
	"howdah/internal/testkit/rig"
)

// stay has families of keys that outlive their databases, with the reason.
var stay = map[string]string{
	state.FailoverRoot: "post-mortems are for after a failure, also of what was deleted since",
	state.EventRoot:    "events are kept for a fortnight",

	state.OperationRoot:  "operations that have ended are kept for a week",
	state.RepositoryRoot: "backups of all databases",
	state.AuthorityRoot:  "signs the certificates of databases to come, too",
	state.CatalogueRoot:  "what a version of PostgreSQL can be set to",
	state.ControlRoot:    "a control plane's own",
	state.EdgeRoot:       "an edge's own",
	state.RunsRoot:       "an edge's own",
	state.BetweenRoot:    "an edge's own",
	state.ElectionRoot:   "one for each start of a control plane",
	state.NotifyRoot:     "up to where events were published",
	state.HostRoot:       "a host's own",
	state.LiveRoot:       "a host's own",
	state.AttemptRoot:    "a host's own",
}

// held has families of keys that outlive their databases as long as there are backups of them, or
// operations that remove those.
var held = []string{state.BackupRoot, state.BackupPartRoot, state.AutomatedRoot, state.DrillRoot, state.JobRoot, state.JobReportRoot}

// late has families of keys that hosts and edges write when they come to it. What is left of them
// is removed twice a minute, and looked for at the end.
var late = []string{state.DeathRoot, state.SwitchRoot, state.ResultRoot, state.CutRoot, state.WitnessRoot, state.WayRoot}

// leftWithin is how long what belongs to a deleted database may stay after the answers.
const leftWithin = 60 * time.Second

// keys returns all keys of etcd.
func (s *Soak) keys(ctx context.Context) ([]string, error) {
	answer, err := s.Rig.Store.Client.Get(ctx, "/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, fmt.Errorf("list etcd's keys: %w", err)
	}
	var all []string
	for _, kv := range answer.Kvs {
		all = append(all, string(kv.Key))
	}
	return all, nil
}

func stays(key string) bool {
	for root := range stay {
		if strings.HasPrefix(key, root) {
			return true
		}
	}
	return false
}

func comesLate(key string) bool {
	return slices.ContainsFunc(late, func(root string) bool { return strings.HasPrefix(key, root) })
}

func isHeld(key string) bool {
	return slices.ContainsFunc(held, func(root string) bool { return strings.HasPrefix(key, root) })
}

// repositoryName is the name of the directory that databases of a soak are backed up to.
const repositoryName = "repository"

// nothingOf returns nil once nothing is left of a database: no keys, processes, control groups,
// files or rules.
func (s *Soak) nothingOf(ctx context.Context, id string) error {
	keys, err := s.keys(ctx)
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return stays(key) || comesLate(key) || isHeld(key) || !strings.Contains(key, id)
	})
	if len(keys) > 0 {
		err = errors.Join(err, fmt.Errorf("etcd has %s", keys))
	}
	return errors.Join(err, noFiles(s.Rig.Dir, id), noFiles("/sys/fs/cgroup", id), noProcess(id), s.noSlot(ctx, id))
}

// noFiles returns nil if no file below a directory is named after a database.
func noFiles(dir, id string) error {
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it went meanwhile
		case err != nil:
			return err
		case e.IsDir() && (path == filepath.Join(dir, repositoryName) || e.Name() == "jobs"):
			return fs.SkipDir // backups may be held, and jobs that remove them go on
		case strings.Contains(strings.ToLower(e.Name()), strings.ToLower(id)):
			found = append(found, path)
			return fs.SkipAll
		case e.IsDir() && e.Name() == "data" && filepath.Base(filepath.Dir(filepath.Dir(path))) == "members":
			return fs.SkipDir // PostgreSQL's own, of another database
		}
		return nil
	})
	if len(found) > 0 {
		err = errors.Join(err, fmt.Errorf("there is %s", found[0]))
	}
	return err
}

// noProcess returns nil if no process has a database in its arguments.
func noProcess(id string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.Contains(bytes.ToLower(line), []byte(strings.ToLower(id))) {
			return fmt.Errorf("process %s is there: %s", e.Name(), bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
	return nil
}

// noSlot returns nil if no source keeps WAL for a replica that is gone.
func (s *Soak) noSlot(ctx context.Context, id string) error {
	name := strings.ReplaceAll(strings.ToLower(id), "-", "_")
	for _, d := range s.databases() {
		d.mu.Lock()
		load := d.load
		d.mu.Unlock()
		if load == nil {
			continue
		}
		text, err := query(ctx, load.Target(), "SELECT coalesce(string_agg(slot_name, ' '), '') FROM pg_replication_slots")
		if err == nil && strings.Contains(text, name) {
			return fmt.Errorf("%s has the slots %s", d.id, text)
		}
	}
	return nil
}

// nothingLeft checks, with every database deleted, that etcd and the kernel have what they had
// before the first one.
func (s *Soak) nothingLeft(ctx context.Context) error {
	return failed("something is left when all is deleted", s.Rig.Wait(leftWithin, func() error {
		keys, err := s.keys(ctx)
		if err != nil {
			return err
		}
		keys = slices.DeleteFunc(keys, func(key string) bool { return stays(key) || slices.Contains(s.begun, key) })
		if len(keys) > 0 {
			err = fmt.Errorf("etcd has %s", keys)
		}
		return errors.Join(err, s.noRules(ctx), s.noBackups())
	}))
}

// noBackups checks that no repository has a part of a database, and no host a job's directory.
func (s *Soak) noBackups() error {
	var all []string
	for _, pattern := range []string{
		filepath.Join(s.Rig.Dir, repositoryName, "db-*"), filepath.Join(s.Rig.Dir, repositoryName, "cluster-*"),
		filepath.Join(s.Rig.HostDir("*"), "jobs", "*", "*"), filepath.Join(s.Rig.HostDir("*"), "members", "*", "restore"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	if len(all) > 0 {
		return fmt.Errorf("there are %q", all)
	}
	return nil
}

// places returns where rules and addresses may be left: where clients are, and on hosts that have a
// network of their own.
func (s *Soak) places() []string {
	if s.Rig.Netns {
		return append([]string{""}, rig.Zones...)
	}
	return []string{""}
}

// noRules checks that the kernel leads no address anywhere, cuts nobody off from a primary, and has
// only the addresses of the beginning.
func (s *Soak) noRules(ctx context.Context) error {
	var errs []error
	for _, zone := range s.places() {
		rules, err := s.at(ctx, zone, "nft", "list", "ruleset")
		if err == nil && strings.Contains(rules, "elements") {
			err = fmt.Errorf("the kernel of %q has rules: %s", zone, rules)
		}
		errs = append(errs, err)
	}
	addresses, err := s.addresses(ctx)
	addresses = slices.DeleteFunc(addresses, func(a string) bool { return slices.Contains(s.addressed, a) })
	if len(addresses) > 0 {
		errs = append(errs, fmt.Errorf("the kernel has %q", addresses))
	}
	return errors.Join(append(errs, err)...)
}

// addresses returns the addresses of all places, each with its place and device.
func (s *Soak) addresses(ctx context.Context) ([]string, error) {
	var all []string
	for _, zone := range s.places() {
		text, err := s.at(ctx, zone, "ip", "-brief", "-4", "address")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			for _, a := range words[min(len(words), 2):] {
				all = append(all, strings.TrimSpace(zone+" "+words[0]+" "+a))
			}
		}
	}
	return all, nil
}

// at runs a program at a place.
func (s *Soak) at(ctx context.Context, zone string, args ...string) (string, error) {
	if zone != "" {
		args = s.Rig.HostCommand(zone, args...)
	}
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

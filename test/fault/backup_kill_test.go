package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/rig"
)

// A snapshot, a drill, two restores of one snapshot, its copy into another repository and a clone go on
// at once. Whenever one of them comes to a step, the control plane is killed; then all agents in its
// place, and then whatever the engine is doing. All end well each time, and nothing half made is left.
func TestBackupsOutliveKillsAtEachStep(t *testing.T) {
	s := begin(t, nil)
	s.repository()
	far := filepath.Join(s.rig.Dir, "far")
	s.must(os.Mkdir(far, 0o700), "make a directory for copies")
	_, err := s.howdah("repository", "add", "far", "--directory", far, "--copies")
	s.must(err, "add a repository for copies")
	s.must(s.rig.AskWith(s.Context(), "shop", func(in *rds.CreateDBInstanceMessage) { in.BackupRetentionPeriod = new(int32(1)) }), "ask for shop")
	s.must(s.rig.WaitStatus(s.Context(), "shop", "available", 2*time.Minute), "shop")
	s.must(s.exec("shop", "CREATE TABLE entries AS SELECT n AS writer, n AS seq FROM generate_series(1, 50000) n"), "write")
	s.snapshot("shop", "base")
	s.must(s.exec("shop", "INSERT INTO entries VALUES (0, 0)"), "write more")

	of := "base" // another one each time: what is in a repository is not copied again
	for _, k := range depth.Some(s, 1, []killing{
		{"serve", s.killServe, always, 6},
		{"agents", s.killAgents, busy, 5},
		{"engine", nil, always, 4},
	}) {
		of = s.killed(k, of)
	}
	s.nothingHalfMade("shop")
}

// killing is who is killed, at how many points at least.
type killing struct {
	name string
	do   func() error // nil: each command of the engine is killed when it is seen first
	at   func(point string) bool
	want int
}

func always(string) bool { return true }

// busy reports whether a host does something at a point, or is about to. A job whose agent is killed
// once more after that begins anew after a pause that doubles.
func busy(point string) bool {
	return !strings.HasSuffix(point, " ") && !strings.Contains(point, ": done") && !strings.Contains(point, ": failed") && !strings.HasPrefix(point, "tidy")
}

// killed has operations go on while somebody is killed at each point that they come to. It copies a
// snapshot, and returns the one that it made.
func (s *story) killed(k killing, copied string) (snapshot string) {
	s.Helper()
	began := time.Now()
	snapshot, restored := "made-"+k.name, []string{k.name + "-1", k.name + "-2"}
	far, clone := "far-"+k.name, k.name+"-clone"
	id, err := s.rig.Database(s.Context(), "shop")
	s.must(err, "find shop")
	for _, target := range restored {
		in := &rds.RestoreDBInstanceFromDBSnapshotMessage{DBInstanceIdentifier: &target, DBSnapshotIdentifier: new("base"), BackupRetentionPeriod: new(int32(0))}
		// A new home restores nothing until all its parts have said which release they run.
		s.asksAgain(rds.ErrInvalidRestore, "RestoreDBInstanceFromDBSnapshot", in, &rds.RestoreDBInstanceFromDBSnapshotResult{})
	}
	in := &rds.CreateDBSnapshotMessage{DBInstanceIdentifier: new("shop"), DBSnapshotIdentifier: &snapshot}
	s.must(s.rig.Call(s.Context(), "CreateDBSnapshot", in, &rds.CreateDBSnapshotResult{}), "ask for a snapshot")
	for _, command := range [][]string{
		{"backup", "drill", "shop"}, {"snapshot", "copy", copied, far, "--repository", "far"}, {"db", "clone", "shop", clone},
	} {
		_, err = s.howdah(append(command, "--no-wait")...)
		s.must(err, "begin "+strings.Join(command, " "))
	}

	hit := map[string]bool{}
	s.eventually(3*time.Minute, func() error {
		points, busy := s.points()
		if k.do == nil {
			points = s.commands()
		}
		for _, p := range slices.Sorted(maps.Keys(points)) {
			if hit[p] || !k.at(p) {
				continue
			}
			hit[p] = true
			if k.do == nil {
				kill(points[p])
				continue
			}
			s.must(k.do(), "kill the "+k.name)
			break // the others have moved on meanwhile
		}
		for _, name := range append(restored, clone) {
			i, err := s.rig.Instance(s.Context(), name)
			if err != nil {
				return fmt.Errorf("look at %s: %w; killed at %q", name, err, slices.Sorted(maps.Keys(hit)))
			}
			if *i.DBInstanceStatus != "available" {
				return fmt.Errorf("%s is %s; killed at %q", name, *i.DBInstanceStatus, slices.Sorted(maps.Keys(hit)))
			}
		}
		if busy || len(hit) == 0 {
			return fmt.Errorf("operations go on; killed at %q", slices.Sorted(maps.Keys(hit)))
		}
		return nil
	})
	s.Logf("%s killed at %q, in %.1f s", k.name, slices.Sorted(maps.Keys(hit)), time.Since(began).Seconds())
	if len(hit) < k.want {
		s.Errorf("%s killed at %q only", k.name, slices.Sorted(maps.Keys(hit)))
	}
	s.snapshotIs(snapshot, "available")
	s.snapshotIs(far, "available")
	drill, err := state.Get[backup.DrillRecord](s.Context(), s.rig.Store, state.Drill(id))
	s.must(err, "look at the drill")
	if drill.Value.Began.Before(began) || drill.Value.Failed != "" {
		s.Errorf("the drill began at %s: %q", drill.Value.Began, drill.Value.Failed)
	}
	for name, rows := range map[string]string{restored[0]: "50000", restored[1]: "50000", clone: "50001"} {
		if n, err := s.query(name, "SELECT count(*)::text FROM entries"); err != nil || n != rows {
			s.Errorf("%s has %s rows, want %s: %v", name, n, rows, err)
		}
		s.drop(name)
	}
	return snapshot
}

func (s *story) killServe() error {
	s.rig.KillPart("serve")
	return s.rig.StartPart("serve")
}

func (s *story) killAgents() error {
	var errs []error
	for _, zone := range rig.Zones {
		s.rig.KillPart("agent-" + zone)
		errs = append(errs, s.rig.StartPart("agent-"+zone))
	}
	return errors.Join(errs...)
}

// digits say how far a step is. They make no step of their own.
var digits = regexp.MustCompile(`[0-9]+`)

// points returns where operations, the jobs of hosts and restores are now. busy says that operations
// have not ended, or that nobody knows.
func (s *story) points() (points map[string][]int, busy bool) {
	ctx, cancel := context.WithTimeout(s.Context(), time.Second)
	defer cancel()
	points = map[string][]int{}
	operations, err := state.List[operation.Record](ctx, s.rig.Store, state.OperationRoot)
	kinds := map[string]string{}
	for _, r := range operations {
		if !r.Value.State.Ended() {
			points[r.Value.Kind+" "+r.Value.Step] = nil
			kinds[r.Value.ID] = r.Value.Kind
			busy = true
		}
	}
	reports, failed := state.List[member.JobReport](ctx, s.rig.Store, state.JobReportRoot)
	for _, r := range reports {
		of, _, _ := strings.Cut(r.Value.Name, "/")
		points[fmt.Sprintf("%s's host: %s %.16s", kinds[of], r.Value.State, digits.ReplaceAllString(r.Value.Unit, "N"))] = nil
	}
	members, lost := state.List[struct {
		Restoring *member.Restoring `json:"restoring"`
	}](ctx, s.rig.Store, state.ReportRoot)
	for _, r := range members {
		if r.Value.Restoring != nil {
			points["restore "+r.Value.Restoring.Phase] = nil
		}
	}
	return points, busy || errors.Join(err, failed, lost) != nil
}

// killable has the commands of the engine that go on with a restart of their own, or of their
// operation. Lists and the preparation of a repository are tried again, too, but seconds later each.
var killable = []string{"backup", "restore", "archive-get", "archive-push", "stanza-create"}

// commands returns the processes of the engine in the rig, by its command.
func (s *story) commands() map[string][]int {
	found := map[string][]int{}
	for pid, args := range s.processes() {
		if filepath.Base(args[0]) != "pgbackrest" {
			continue
		}
		if n := slices.IndexFunc(args[1:], func(a string) bool { return !strings.HasPrefix(a, "-") }); n >= 0 && slices.Contains(killable, args[n+1]) {
			found[args[n+1]] = append(found[args[n+1]], pid)
		}
	}
	return found
}

// processes returns the arguments of all processes that name the rig's directory.
func (s *story) processes() map[int][]string {
	found := map[int][]string{}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	s.must(err, "list processes")
	for _, path := range lines {
		line, err := os.ReadFile(path)
		pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && bad == nil && strings.Contains(string(line), s.rig.Dir) {
			found[pid] = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		}
	}
	return found
}

func kill(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
}

func (s *story) snapshotIs(name, status string) {
	s.Helper()
	var out rds.DBSnapshotMessage
	err := s.rig.Call(s.Context(), "DescribeDBSnapshots", &rds.DescribeDBSnapshotsMessage{DBSnapshotIdentifier: &name}, &out)
	s.must(err, "describe the snapshot "+name)
	if got := *out.DBSnapshots[0].Status; got != status {
		s.Errorf("the snapshot %s is %s, want %s", name, got, status)
	}
}

// drop deletes an instance, and does not wait for that.
func (s *story) drop(name string) {
	s.Helper()
	in := &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: &name, SkipFinalSnapshot: new(true)}
	s.must(s.rig.Call(s.Context(), "DeleteDBInstance", in, &rds.DeleteDBInstanceResult{}), "delete "+name)
}

// nothingHalfMade expects that all operations about a database have worked, and that nothing is left of their jobs, of
// restores, nor of backups that were not made to their end.
func (s *story) nothingHalfMade(name string) {
	s.Helper()
	id, err := s.rig.Database(s.Context(), name)
	s.must(err, "find "+name)
	var operations []state.Record[operation.Record]
	s.eventually(time.Minute, func() (err error) { // a keeper may have begun to tidy up
		operations, err = state.List[operation.Record](s.Context(), s.rig.Store, state.OperationRoot)
		for _, r := range operations {
			if err == nil && !r.Value.State.Ended() {
				err = fmt.Errorf("%s %s goes on", r.Value.Kind, r.Value.ID)
			}
		}
		return err
	})
	for _, r := range operations {
		if r.Value.About.Database == id && r.Value.State != operation.Done {
			s.Errorf("%s %s is %s: %s", r.Value.Kind, r.Value.ID, r.Value.State, r.Value.Reason)
		}
	}
	s.eventually(time.Minute, func() error {
		var errs []error
		for _, root := range []string{state.JobRoot, state.JobReportRoot} {
			if jobs, err := state.List[member.JobReport](s.Context(), s.rig.Store, root); err != nil || len(jobs) > 0 {
				errs = append(errs, fmt.Errorf("%s has %d records: %w", root, len(jobs), err))
			}
		}
		for _, pattern := range []string{"jobs/*/*", "members/*/restore", "trash/*"} {
			if left, err := filepath.Glob(filepath.Join(s.rig.Home.HostDir("*"), pattern)); err != nil || len(left) > 0 {
				errs = append(errs, fmt.Errorf("there are %q: %w", left, err))
			}
		}
		if running := s.commands(); len(running["backup"])+len(running["restore"]) > 0 {
			errs = append(errs, fmt.Errorf("the engine runs: %v", running))
		}
		return errors.Join(append(errs, s.onlyRecorded(id))...)
	})
}

// onlyRecorded returns nil if the repository has the backups that have a record, and nothing of
// others.
func (s *story) onlyRecorded(id string) error {
	records, err := state.List[backup.Backup](s.Context(), s.rig.Store, state.BackupPrefix(id))
	if err != nil {
		return err
	}
	var want []string
	for _, r := range records {
		want = append(want, r.Value.Label)
	}
	there, err := filepath.Glob(filepath.Join(s.rig.Dir, "repository", id, "backup", "*", "[0-9]*"))
	var got []string
	for _, path := range there {
		got = append(got, filepath.Base(path))
	}
	slices.Sort(want)
	slices.Sort(got)
	if err == nil && !slices.Equal(want, got) {
		err = fmt.Errorf("the repository has the backups %q, and recorded are %q", got, want)
	}
	return err
}

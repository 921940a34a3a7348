package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
)

var shop = spec.Scope{Account: "123456789012", Region: "us-east-1"}

// site is a home's state with backups, and hosts that are played.
type site struct {
	t       *testing.T
	store   *state.Store
	cache   *state.Cache
	yard    *yard
	backups *Backups
	runner  *step.Runner
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, store: etcdtest.Store(t)}
	s.cache = etcdtest.Cache(t, s.store, func(c *state.Cache) {
		s.yard = &yard{store: s.store, seen: map[string]step.JobReport{}, stored: map[string][]backup.Backup{}, fails: map[string]string{}, lost: map[string]bool{}, offers: map[string]int{}}
		s.backups = New(Config{Store: s.store, Cache: c, Hosts: s.yard, Log: slog.New(slog.DiscardHandler)})
		s.backups.pace = pace{look: time.Millisecond, wait: time.Millisecond, pause: time.Millisecond}
		s.runner = step.New(step.Config{
			Store: s.store, Cache: c, Name: "s1", Definitions: s.backups.Definitions(), Log: slog.New(slog.DiscardHandler),
		})
	})
	for _, host := range []string{"zone-a", "zone-b"} {
		s.put(state.Put(state.Host(host), member.Host{Name: host, DiskFree: 1 << 30, Majors: map[int]string{15: "15.1"}}), state.Put(state.Live(host), member.Liveness{Alive: true}))
	}
	s.put(state.Put(state.Repository("main"), backup.Repository{Name: "main", Key: []byte("sealed"), Default: true}))
	return s
}

func (s *site) put(ops ...state.Op) {
	s.t.Helper()
	etcdtest.Put(s.t, s.store, s.cache, ops...)
}

// elect returns the condition of a new term of leadership. Those of earlier terms hold no more.
func (s *site) elect() state.Op {
	s.t.Helper()
	key := state.ElectionRoot + "leader"
	s.put(state.Delete(key))
	revision, err := s.store.Commit(s.t.Context(), state.Put(key, "s1"))
	if err != nil {
		s.t.Fatal(err)
	}
	return state.Held(key, revision)
}

// lead has operations carried out until the answer is called.
func (s *site) lead(r *step.Runner, leading state.Op) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := r.Run(ctx, leading); err != nil {
			s.t.Errorf("run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	s.t.Cleanup(stop)
	return stop
}

// instance makes a database that serves on a host.
func (s *site) instance(name, host string, change func(*spec.Instance)) spec.Instance {
	s.t.Helper()
	i := spec.Instance{Common: spec.Common{
		Scope: shop, Name: name, ResourceID: "db-" + strings.ToUpper(name), Created: time.Now().UTC(), Major: 15, Generation: 1,
		BackupWindow: "03:00-03:30", MasterUser: "me",
	}}
	if change != nil {
		change(&i)
	}
	s.put(state.Put(state.Instance(shop.Account, shop.Region, name), i))
	s.serve(i.ResourceID, host, member.Archived{})
	return i
}

// serve has the members of a database on two hosts, and the primary on one of them.
func (s *site) serve(id, host string, archived member.Archived) {
	s.t.Helper()
	layout := plan.Layout{ID: id, Created: true}
	var ops []state.Op
	leader := ""
	for n, at := range []string{"zone-a", "zone-b"} {
		m := plan.Placed{Name: fmt.Sprintf("m%d", n+1), Host: at}
		layout.Members = append(layout.Members, m)
		report := member.Report{Ready: true, InRecovery: at != host}
		if at == host {
			report.Archived = &archived
			leader = m.Name
		}
		full := member.ID(id, m.Name)
		ops = append(ops, state.Put(state.Report(at, full), report), state.Put(state.Assign(at, full), member.Assignment{
			ID: full, Generation: 1, Archive: &member.Archive{Repositories: []string{"main"}},
		}))
	}
	// Patroni's value is no JSON.
	if _, err := s.store.Client.Put(s.t.Context(), patroni.LeaderKey(id), leader); err != nil {
		s.t.Fatal(err)
	}
	s.put(append(ops, state.Put(state.Layout(id), layout))...)
}

func aboutOf(i spec.Instance) operation.About {
	return operation.About{Scope: i.Scope, Type: event.Instance, Name: i.Name, Database: i.ResourceID}
}

// snapshot begins a snapshot of an instance as the API does.
func (s *site) snapshot(i spec.Instance, name string, k operation.Kind, change func(*backup.TakeArgs)) string {
	s.t.Helper()
	key, id := state.Snapshot(shop.Account, shop.Region, name), "snap-"+name
	args := backup.TakeArgs{Snapshot: key, Repository: "main"}
	if change != nil {
		change(&args)
	}
	r, err := operation.New(id, k, aboutOf(i), args, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(state.Swap(state.Operation(id), 0, r), state.Swap(key, 0, backup.Snapshot{
		Scope: shop, Name: name, State: backup.Creating, Instance: &i, Database: i.ResourceID, Repository: "main", Operation: id,
		Asked: time.Now().UTC(), Tags: []spec.Tag{},
	}))
	return id
}

func (s *site) operation(id string) operation.Record {
	r, err := state.Load[operation.Record](s.cache, state.Operation(id))
	if err != nil {
		return operation.Record{}
	}
	return r.Value
}

// ends waits until an operation has ended so.
func (s *site) ends(id string, want operation.State) operation.Record {
	s.t.Helper()
	testkit.Eventually(s.t, 20*time.Second, func() error {
		if r := s.operation(id); r.State != want {
			return fmt.Errorf("%s is %+v", id, r)
		}
		return nil
	})
	return s.operation(id)
}

// waits waits until an operation says what it waits for.
func (s *site) waits(id, why string) {
	s.t.Helper()
	testkit.Eventually(s.t, 20*time.Second, func() error {
		if r := s.operation(id); !strings.Contains(r.Trouble, why) {
			return fmt.Errorf("%s is %+v", id, r)
		}
		return nil
	})
}

func (s *site) shot(name string) backup.Snapshot {
	r, err := state.Load[backup.Snapshot](s.cache, state.Snapshot(shop.Account, shop.Region, name))
	if err != nil {
		return backup.Snapshot{}
	}
	return r.Value
}

func (s *site) records(database string) []backup.Backup {
	return s.backups.backups(database, "main")
}

// events returns the numbers of the events of a source, sorted.
func (s *site) events(source string) string {
	var all []string
	for _, e := range state.LoadAll[event.Event](s.cache, state.EventRoot) {
		if e.Value.Source == source {
			all = append(all, e.Value.ID[strings.LastIndex(e.Value.ID, "-")+1:])
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// clean fails if an operation has left something.
func (s *site) clean(database string) {
	s.t.Helper()
	testkit.Eventually(s.t, 20*time.Second, func() error {
		if jobs := s.cache.Keys(state.JobRoot); len(jobs) > 0 {
			return fmt.Errorf("jobs are left: %q", jobs)
		}
		part, err := state.Load[backup.Part](s.cache, state.BackupPart(database, "main"))
		if err == nil && part.Value.Operation != "" {
			return fmt.Errorf("the part is still %s's", part.Value.Operation)
		}
		return nil
	})
}

// yard plays all hosts, which do what they are asked for at once, and their repository. It knows of a
// job only what is in etcd, as hosts do.
type yard struct {
	damaged string // what is found while a backup is made
	store   *state.Store

	mu     sync.Mutex
	seen   map[string]step.JobReport // by host and name
	asked  []backup.BackupJob
	tidied []backup.TidyJob
	stored map[string][]backup.Backup // by database
	fails  map[string]string          // by host: why its jobs fail; final if it begins with "!"
	slow   bool                       // nothing ends
	forget chan struct{}              // a job that has ended is told once, and is lost as soon as this is closed
	ahead  time.Duration              // of the clocks of hosts
	made   int
	copied []backup.CopyJob
	served []backup.ServeJob
	lost   map[string]bool // by host: it serves no primary any more
	drills []backup.DrillJob
	drill  backup.Drilled // what the next one finds, but for its label
	// Downloads that were asked for, how often each was looked at, and whether somebody fetches them.
	downloads []backup.DownloadJob
	offers    map[string]int
	fetched   bool
}

func (y *yard) Ask(j step.Job) []state.Op {
	return []state.Op{state.Swap(state.Job(j.Host, j.Name), 0, member.Job{Name: j.Name, Host: j.Host, Kind: j.Kind, Turn: j.Turn, Args: j.Args})}
}

func (y *yard) Forget(host, name string) []state.Op {
	return []state.Op{state.Delete(state.Job(host, name))}
}

func (y *yard) Look(ctx context.Context, host, name string) (step.JobReport, error) {
	j, err := state.Get[member.Job](ctx, y.store, state.Job(host, name))
	if errors.Is(err, state.ErrNotFound) {
		return step.JobReport{}, nil
	}
	if err != nil {
		return step.JobReport{}, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if j.Value.Kind == backup.JobServe {
		return y.serve(host, j.Value), nil
	}
	if j.Value.Kind == backup.JobDownload && y.fails[host] == "" {
		return y.offer(j.Value), nil
	}
	if r, done := y.seen[host+"/"+name]; done {
		if forget := y.forget; forget != nil {
			y.forget = nil
			y.mu.Unlock()
			<-forget
			y.mu.Lock()
			r = step.JobReport{State: step.Lost, Detail: "it is forgotten"}
			y.seen[host+"/"+name] = r
		}
		return r, nil
	}
	if y.slow {
		return step.JobReport{State: step.InProgress, Progress: operation.Progress{Done: 1, Of: 2, Unit: "bytes"}}, nil
	}
	r := y.do(host, j.Value)
	y.seen[host+"/"+name] = r
	return r, nil
}

// serve serves a primary. The caller holds mu.
func (y *yard) serve(host string, j member.Job) step.JobReport {
	if y.lost[host] {
		return step.JobReport{State: step.Lost, Detail: "it serves nobody"}
	}
	var args backup.ServeJob
	if err := json.Unmarshal(j.Args, &args); err != nil {
		return step.JobReport{State: step.Lost, Detail: err.Error(), Final: true}
	}
	y.served = append(y.served, args)
	text, err := json.Marshal(backup.Served{Address: host, Port: 1})
	if err != nil {
		return step.JobReport{State: step.Lost, Detail: err.Error(), Final: true}
	}
	return step.JobReport{State: step.InProgress, Result: text}
}

// offer is a download that is ready at the second look, and over when somebody fetched it. The caller
// holds mu.
func (y *yard) offer(j member.Job) step.JobReport {
	var args backup.DownloadJob
	if err := json.Unmarshal(j.Args, &args); err != nil {
		return step.JobReport{State: step.Lost, Detail: err.Error(), Final: true}
	}
	if y.offers[j.Name]++; y.offers[j.Name] == 1 {
		y.downloads = append(y.downloads, args)
	}
	switch {
	case y.fetched:
		return step.JobReport{State: step.Succeeded}
	case y.offers[j.Name] == 1 || y.slow:
		return step.JobReport{State: step.InProgress, Progress: operation.Progress{Done: 1, Of: 2, Unit: "bytes of files"}}
	}
	return step.JobReport{State: step.InProgress, Result: json.RawMessage(`{"files":7,"bytes":99}`)}
}

// do does a job. The caller holds mu.
func (y *yard) do(host string, j member.Job) step.JobReport {
	if why := y.fails[host]; why != "" {
		detail, final := strings.CutPrefix(why, "!")
		return step.JobReport{State: step.Lost, Detail: detail, Final: final}
	}
	var result any
	switch j.Kind {
	case backup.JobBackup:
		var args backup.BackupJob
		if err := json.Unmarshal(j.Args, &args); err != nil {
			return step.JobReport{State: step.Lost, Detail: err.Error(), Final: true}
		}
		y.asked = append(y.asked, args)
		result = y.backUp(args)
	case backup.JobTidy:
		var args backup.TidyJob
		if err := json.Unmarshal(j.Args, &args); err != nil {
			return step.JobReport{State: step.Lost, Detail: err.Error(), Final: true}
		}
		y.tidied = append(y.tidied, args)
		y.stored[args.Database] = slices.DeleteFunc(y.stored[args.Database], func(b backup.Backup) bool { return !slices.Contains(args.Keep, b.Label) })
		result = backup.Tidied{}
	case backup.JobList:
		var args backup.ListJob
		if err := json.Unmarshal(j.Args, &args); err != nil {
			return step.JobReport{State: step.Lost, Detail: err.Error(), Final: true}
		}
		listed := backup.Listed{}
		for _, b := range y.stored[args.Database] {
			if slices.Contains(args.Known, b.Label) {
				continue
			}
			if listed.More = len(listed.Backups) == 2; listed.More {
				break
			}
			listed.Backups = append(listed.Backups, b)
		}
		result = listed
	case backup.JobCopy:
		var args backup.CopyJob
		if err := json.Unmarshal(j.Args, &args); err != nil {
			return step.JobReport{State: step.Lost, Detail: err.Error(), Final: true}
		}
		y.copied = append(y.copied, args)
		y.stored[args.Database] = append(y.stored[args.Database], args.Note.Backup)
		result = backup.Copied{Stored: 77}
	case backup.JobDrill:
		var args backup.DrillJob
		if err := json.Unmarshal(j.Args, &args); err != nil {
			return step.JobReport{State: step.Lost, Detail: err.Error(), Final: true}
		}
		y.drills = append(y.drills, args)
		found := y.drill
		found.Label = args.Label
		result = found
	}
	text, err := json.Marshal(result)
	if err != nil {
		return step.JobReport{State: step.Lost, Detail: err.Error(), Final: true}
	}
	return step.JobReport{State: step.Succeeded, Result: text}
}

// backUp makes a backup, unless the operation has one already.
func (y *yard) backUp(args backup.BackupJob) backup.Backup {
	all := y.stored[args.Database]
	for _, b := range all {
		if b.Operation == args.Operation {
			return b
		}
	}
	y.made++
	now := time.Now().UTC().Add(y.ahead)
	b := backup.Backup{
		Database: args.Database, Repository: args.Repository, Operation: args.Operation, Label: fmt.Sprintf("B%03d", y.made), Kind: backup.Full,
		Major: 15, Start: now, Stop: now, Size: 100, Stored: 10, Damaged: y.damaged,
		Timeline: 1, StartLSN: lsn.LSN(y.made) * 100, StopLSN: lsn.LSN(y.made)*100 + 50,
	}
	if n := len(all); !args.Full && n > 0 {
		b.Kind, b.Needs = backup.Incremental, append(slices.Clone(all[n-1].Needs), all[n-1].Label)
	}
	y.stored[args.Database] = append(all, b)
	return b
}

func (y *yard) set(change func()) {
	y.mu.Lock()
	defer y.mu.Unlock()
	change()
}

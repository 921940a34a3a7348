// Package database runs databases in the members of a host, as a kind of workload of package agent:
// Patroni, and the PostgreSQL that it starts. It decides nothing about who is primary. What it does
// on its own is to keep its members safe: no PostgreSQL runs without its Patroni, a primary whose
// PostgreSQL died is fenced, proved dead and replaced at once, and a Patroni that hangs is started
// again, or replaced like a dead one if that is safe.
//
// Host is what a host has for all its databases, and runner what each has. The end of Patroni or
// PostgreSQL is dealt with in died.go; packages below this one do what a runner only decides: guard
// replaces a primary, cut cuts a standby off, watchdog and probe look, spare and aside keep data.
package database

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/patroni/config"
	"howdah/internal/engine/patroni/program"
	"howdah/internal/engine/pgbackrest"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/archive"
	"howdah/internal/host/database/aside"
	"howdah/internal/host/database/cut"
	"howdah/internal/host/database/exchange"
	"howdah/internal/host/database/jobs"
	"howdah/internal/host/database/origin"
	"howdah/internal/host/database/spare"
	"howdah/internal/host/database/watchdog"
	"howdah/internal/host/hang"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/job"
	"howdah/internal/host/osuser"
	"howdah/internal/model/extension"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/system/owner"
)

// Config says how databases are kept.
type Config struct {
	// Hang says when a PostgreSQL counts as hanging; zero is DefaultHangPatience.
	Hang hang.Patience
	// Program is our own program, which members run as their gate (package gate), and to make data of
	// backups (package seed). "": they do neither.
	Program string
}

// Host is what a host has for all its databases: it is their Kind.
type Host struct {
	*agent.Agent
	Config
	patroni string // program
	fences  *cut.Fences
	spares  *spare.Keeper
	// hangAfter is how long a Patroni may run without a PostgreSQL, and without a
	// child that is making one, before it counts as hanging.
	hangAfter time.Duration
	// driftEvery is how often members are held against their configuration.
	driftEvery time.Duration
	// leasePatience is the same for one that has a PostgreSQL.
	leasePatience watchdog.LeasePatience
	// sources opens repositories for members that are restored; nil: the gateway lets them in.
	sources origin.Open
	// logins is the port where the PostgreSQLs of this host are answered; set before
	// anything runs.
	logins int
	// certificate is that of the servers which answer members.
	certificate *certificate
	// engine backs up; nil: noEngine says why it is not there.
	engine   backup.Engine
	noEngine error
	// repositories has the keys of members to repositories.
	repositories *archive.Keeper
	// exchange does exports and imports for members.
	exchange *exchange.Server
	// warming is held while a primary reads again what it had cached before it was started.
	warming sync.Mutex
	// offers has what control planes may fetch from here.
	offers jobs.Offers
}

// NewHost looks for Patroni. An agent opens what it answers.
func NewHost(cfg Config) (*Host, error) {
	program, err := program.Find()
	if err != nil {
		return nil, err
	}
	a := &Host{Config: cfg, patroni: program, hangAfter: hangAfter, driftEvery: driftEvery, leasePatience: watchdog.DefaultLeasePatience}
	if a.Hang == (hang.Patience{}) {
		a.Hang = hang.DefaultPatience
	}
	engine, err := pgbackrest.Find()
	if a.noEngine = err; err == nil {
		a.engine = engine
	}
	return a, nil
}

// Dirs are where data are that no member has yet.
func (a *Host) Dirs() []string { return spare.Dirs() }

// Jobs are what hosts of databases do for operations.
func (a *Host) Jobs() []job.Kind {
	if a.engine == nil {
		return jobs.Refuse(a.noEngine)
	}
	h := &jobs.Host{
		Engine: a.engine, Place: a.repositories.Place, User: a.UserOf, Own: a.ownDir, Port: a.backupPort, Backed: a.repositories.Backed,
		Admit: a.repositories.Admit, Dismiss: a.repositories.Dismiss, Store: a.repositories.Store, CA: a.repositories.CA,
		Give: func(dir string) (*owner.User, error) {
			err := a.Give(dir)
			return a.OwnerOf(dir), err
		},
		Checkpoint: a.checkpoint, Encrypt: a.EncryptAside, Sockets: a.GiveSocketDir, Room: a.Room, Offers: &a.offers, Procs: a.Procs, Log: a.Log,
	}
	return h.Kinds()
}

// Open makes directories, and finds out how standbys can be cut off here.
func (a *Host) Open(ctx context.Context, of *agent.Agent) error {
	a.Agent = of
	a.spares = spare.New(of)
	if err := a.spares.Open(); err != nil {
		return err
	}
	if err := a.placeGate(); err != nil {
		return err
	}
	a.certificate = newCertificate(of)
	if err := a.openRepositories(); err != nil {
		return err
	}
	if err := a.openExchange(); err != nil {
		return err
	}
	a.fences = &cut.Fences{Agent: of, Cutter: cut.Choose(ctx, of, a.standbys), Standbys: a.standbys, GiveIn: a.giveIn}
	return nil
}

// Begin listens for logins, and for members that archive.
func (a *Host) Begin(ctx context.Context) (run func(context.Context) error) {
	answerLogins, answerArchivers := a.listenForLogins(ctx), a.listenForArchivers(ctx)
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, work := range []func(context.Context) error{
			answerLogins, answerArchivers, a.fences.Run, a.followLosses, a.followOrphans, a.spares.Run, a.exchange.Run,
		} {
			group.Go(func() error { return work(ctx) })
		}
		return group.Wait()
	}
}

// New is a database's member.
func (a *Host) New(m *agent.Member) agent.Workload { return newRunner(a, m) }

// Handler shows logs, and judges settings.
func (a *Host) Handler() http.Handler {
	offer := func(job string) (hostapi.Offer, error) { return a.offers.Of(job) }
	return hostapi.AgentHandler(
		hostapi.LogHandler(a.logsOf, a.Log), hostapi.SettingHandler(a.checkSetting, a.Log), hostapi.ProbeHandler(a.Name, a.Log), hostapi.FetchHandler(offer, a.Log))
}

// Facts are the versions of PostgreSQL, and what members can be given here.
func (a *Host) Facts(h *member.Host) error {
	installs, err := postgres.Installed()
	if err != nil {
		return err
	}
	h.Majors, h.Extensions = map[int]string{}, map[int]extension.Installed{}
	for _, i := range installs {
		h.Majors[i.Major] = i.Full
		if has, err := i.Extensions(); err == nil { // otherwise nobody knows
			h.Extensions[i.Major] = has
		}
	}
	h.Cut, h.OwnNames, h.OwnKeys = a.fences.Cutter.Name(), true, true
	return nil
}

// Release frees what a PostgreSQL that was killed left in memory.
func (a *Host) Release(dir string) error { return releaseShared(dir) }

func releaseShared(dir string) error {
	return postgres.RemoveShared(filepath.Join(dir, patroni.DataDir))
}

// Forget closes the place of prepared data, and the member's ways into repositories.
func (a *Host) Forget(id string) error {
	return errors.Join(a.spares.Close(id), origin.Forget(context.Background(), a.Agent, id), a.repositories.Dismiss(id), a.repositories.Dismiss(id+restoring))
}

// runner is that of a member, which is started if it is not there.
func (a *Host) runner(ctx context.Context, id string) *runner { return runnerOf(a.Member(ctx, id)) }

func (a *Host) allRunners() []*runner {
	var all []*runner
	for _, m := range a.Members() {
		all = append(all, runnerOf(m))
	}
	return all
}

func (a *Host) standbys() []*cut.Standby {
	var all []*cut.Standby
	for _, r := range a.allRunners() {
		all = append(all, r.standby)
	}
	return all
}

// runnerOf: all members of a host are databases'.
func runnerOf(m *agent.Member) *runner {
	r, _ := m.Workload().(*runner)
	return r
}

// osUsers may be rdsadmin on the private socket: whoever runs PostgreSQL, and
// whoever runs the agent.
func (a *Host) osUsers(id string) []string {
	if u := a.UserOf(id); u != nil {
		return []string{u.Name, "root"}
	}
	return []string{osuser.Current()}
}

// patroniMember turns an assignment into Patroni's configuration.
func (a *Host) patroniMember(as member.Assignment, install postgres.Install, hosts []string) config.Member {
	dir := a.MemberDir(as.ID)
	return config.Member{
		Scope: as.Scope, Name: as.PatroniName(), Dir: dir,
		Address: as.Address, Port: as.Port, RESTPort: as.RESTPort,
		BinDir: install.BinDir, Programs: aside.Programs(dir),
		SocketDir: a.SocketDir(as.ID), EtcdHosts: hosts, OSUsers: a.osUsers(as.ID),
		Parameters: a.parameters(as), Cluster: as.Cluster,
		Keys: keysOf(as), Gate: a.gateCommand(), Tier: as.Tier, Boost: as.Boost, NoFailover: as.NoFailover, NoSync: as.NoSync,
		RequireTLS: as.RequireTLS, Allow: as.Allow, Tokens: a.tokens(as), Generation: as.Generation,
	}
}

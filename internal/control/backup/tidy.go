package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// The steps of Tidy. After the home was restored, find and list look for backups that have no record:
// see find. Then records go first. From then on nobody can begin to use what they stood for: who
// does that has it as a condition of the transaction that the record is there. Whoever began before
// is seen when the files are removed.
const (
	stepFind   = "find"
	stepList   = "list"
	stepForget = "forget"
	stepRemove = "remove"
)

// NoteLabel is the note by which any operation about a database says which backup it uses. Tidy
// leaves that one, as it does the one of a restore.
const NoteLabel = "label"

// forgetAtOnce is how many records are removed in one transaction.
const forgetAtOnce = 60

// forget takes the part, and removes the records of what nobody needs.
func (b *Backups) forget(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.TidyArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	database := run.Record.About.Database
	taken, why, err := b.take(ctx, run, args.Repository)
	if err != nil {
		return step.Outcome{}, err
	}
	if why != nil {
		return b.wait(run, why), nil
	}
	if err := b.fresh(ctx); err != nil {
		return step.Outcome{}, err
	}
	ops := []state.Op{taken}
	over := b.look().holdings(database, args.Repository).over(time.Now())
	for n, r := range over {
		if n == forgetAtOnce {
			return step.Nap(0).With(ops...), nil
		}
		ops = append(ops, r)
	}
	host, err := b.tidier(database)
	if err != nil {
		return b.wait(run, err), nil
	}
	asks(run, host)
	return step.Next(stepRemove).With(ops...), nil
}

// remove has a host remove the files.
func (b *Backups) remove(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.TidyArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	report, err := b.follow(ctx, run)
	if err != nil {
		return step.Outcome{}, err
	}
	switch report.State {
	case step.InProgress:
		return b.lookAgain(report), nil
	case step.Succeeded:
		return b.removed(ctx, run, args)
	case step.Lost:
		return b.elsewhere(run, report)
	case step.NotAsked:
	}
	if err := b.fresh(ctx); err != nil {
		return step.Outcome{}, err
	}
	h := b.look().holdings(run.Record.About.Database, args.Repository)
	kept := h.Keep(time.Now())
	return b.ask(run, backup.JobTidy, backup.TidyJob{
		Database: run.Record.About.Database, Repository: args.Repository, Keep: kept.Labels, Archive: kept.Archive, Gone: h.gone(kept),
	})
}

// removed ends a Tidy. The part goes if nothing is left in it.
func (b *Backups) removed(ctx context.Context, run *step.Run, args backup.TidyArgs) (step.Outcome, error) {
	if err := b.fresh(ctx); err != nil {
		return step.Outcome{}, err
	}
	h := b.look().holdings(run.Record.About.Database, args.Repository)
	given, err := b.gives(ctx, run, args.Repository, h.gone(h.Keep(time.Now())))
	return step.End().With(append(given, b.endsJob(run)...)...), err
}

// elsewhere follows a job that failed: it is asked for again after a pause, of a host that can do it
// then.
func (b *Backups) elsewhere(run *step.Run, report step.JobReport) (step.Outcome, error) {
	j := jobOf(run)
	err := fmt.Errorf("host %s could not tidy: %s", j.host, report.Detail)
	if out, paused := pausing(run); paused {
		return out, nil
	}
	if run.Record.Notes[noteWhy] == "" || run.Record.Notes[noteAgain] == "" {
		b.failed(run, err)
		return step.Nap(b.pace.pause).Because(err), nil
	}
	host, none := b.tidier(run.Record.About.Database)
	if none != nil {
		return b.wait(run, none), nil
	}
	ended := b.endsJob(run)
	run.Note(noteAgain, "")
	run.Note(noteHost, host)
	run.Note(noteJob, fmt.Sprintf("%s/%d-%s", run.Record.ID, run.Turn(), run.Record.Notes[noteFailures]))
	return step.Nap(0).With(ended...), nil
}

// letGo is the undo of forget. Records that are gone stay gone.
func (b *Backups) letGo(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.TidyArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	given, err := b.gives(ctx, run, args.Repository, false)
	return step.End().With(given...), err
}

// errNoHost says that nobody can tidy now.
var errNoHost = errors.New("no host is alive")

// tidier returns the host that removes files of a database: the one of its primary, or else any.
func (b *Backups) tidier(database string) (string, error) {
	if host := b.primaryHost(database); b.alive(host) {
		return host, nil
	}
	var hosts []string
	for _, h := range state.ViewAll[member.Host](b.Cache, state.HostRoot) {
		if _, _, drained := b.Cache.Raw(state.Drain(h.Value.Name)); b.alive(h.Value.Name) && !drained {
			hosts = append(hosts, h.Value.Name)
		}
	}
	if len(hosts) == 0 {
		return "", errNoHost
	}
	// Databases are spread over the hosts.
	return hosts[int(spread(database)%uint32(len(hosts)))], nil
}

// spread returns a number that is the same for the same database.
func spread(database string) (n uint32) {
	for _, c := range strings.ToLower(database) {
		n = n*31 + uint32(c)
	}
	return n
}

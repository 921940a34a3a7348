// Package operation has the admin API's verbs on operations: on those that are under way, and on
// those that have ended. It carries none out. The control plane that leads does.
package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// Config is what the verbs need. All fields are required.
type Config struct {
	State *state.Client
	Now   func() time.Time
	Log   *slog.Logger
}

// service has the handlers.
type service struct {
	*state.Client
	now func() time.Time
	log *slog.Logger
}

// Verbs returns the verbs on operations.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg.State, cfg.Now, cfg.Log}
	return verb.Table{
		admin.VerbOperations:      verb.On(verb.OfHome, s.list),
		admin.VerbOperationCancel: verb.On(verb.OfHome, s.cancel),
	}
}

// list returns operations, those under way first.
func (s *service) list(ctx context.Context, _ front.Call, in admin.OperationsRequest) (admin.OperationsAnswer, error) {
	if in.Limit < 0 {
		return admin.OperationsAnswer{}, admin.NewError(admin.CodeInvalidRequest, "A limit cannot be negative.", "")
	}
	if err := s.Fresh(ctx); err != nil {
		return admin.OperationsAnswer{}, err
	}
	out := admin.OperationsAnswer{Operations: []admin.Operation{}}
	ended := 0
	for _, r := range kept(s.Cache) {
		o := r.About
		if in.ID != "" && r.ID != in.ID || in.Name != "" && !strings.EqualFold(o.Name, in.Name) && !strings.EqualFold(o.Database, in.Name) {
			continue
		}
		if r.State.Ended() {
			if ended++; in.Limit > 0 && ended > in.Limit {
				continue
			}
		}
		shown := s.shown(r)
		if in.ID != "" {
			shown.Jobs = s.jobs(r.ID)
		}
		out.Operations = append(out.Operations, shown)
	}
	if in.ID != "" && len(out.Operations) == 0 {
		return out, unknown(in.ID)
	}
	return out, nil
}

func unknown(id string) error {
	return admin.NewError(admin.CodeOperationNotFound, fmt.Sprintf("There is no operation %.64q.", id), "see `howdah operations`")
}

// kept returns all operations that are kept: first those under way, then the others, the newest
// first.
func kept(cache *state.Cache) []*operation.Record {
	var all []*operation.Record
	for _, r := range state.ViewAll[operation.Record](cache, state.OperationRoot) {
		all = append(all, r.Value)
	}
	order := func(r *operation.Record) time.Time {
		if r.State.Ended() {
			return r.Ended
		}
		return r.Began.Add(100 * 365 * 24 * time.Hour) // before all that have ended
	}
	slices.SortFunc(all, func(a, b *operation.Record) int {
		return cmp.Or(order(b).Compare(order(a)), strings.Compare(a.ID, b.ID))
	})
	return all
}

func (s *service) shown(r *operation.Record) admin.Operation {
	_, _, cancelling := s.Cache.Raw(state.OperationCancel(r.ID))
	out := admin.Operation{
		ID: r.ID, Kind: r.Kind, Database: r.About.Name, ResourceID: r.About.Database, Account: r.About.Account, Region: r.About.Region,
		State: string(r.State), Ended: r.State.Ended(), Step: r.Step, Done: r.Progress.Done, Of: r.Progress.Of, Unit: r.Progress.Unit,
		Failures: r.Failures, Trouble: r.Trouble, Reason: r.Reason, Left: r.Left,
		Cancelling: cancelling && !r.State.Ended(), Late: r.Late(s.now()), Began: r.Began, StepBegan: r.StepBegan, Next: r.Next,
		Deadline: r.Deadline, EndedAt: r.Ended, By: r.Owner,
	}
	for _, d := range r.Excludes {
		out.Excludes = append(out.Excludes, string(d))
	}
	return out
}

// jobs returns what hosts do for an operation.
func (s *service) jobs(id string) (all []admin.OperationJob) {
	for _, j := range state.ViewAll[member.Job](s.Cache, state.JobRoot) {
		if !strings.HasPrefix(j.Value.Name, id+"/") {
			continue
		}
		shown := admin.OperationJob{Host: j.Value.Host, Kind: j.Value.Kind, State: "asked", Asked: j.Value.At}
		r, err := state.View[member.JobReport](s.Cache, state.JobReport(j.Value.Host, j.Value.Name))
		if err == nil && r.Value.Asked == j.Revision {
			shown.State, shown.Said = string(r.Value.State), r.Value.At
			shown.Done, shown.Of, shown.Unit = r.Value.Done, r.Value.Of, r.Value.Unit
			shown.Detail = operation.Plain(r.Value.Detail, mostDetail)
		}
		all = append(all, shown)
	}
	return all
}

// mostDetail is how many bytes of a host's words are shown.
const mostDetail = 500

// cancel records that an operation is to be cancelled. The control plane that leads cancels it. To
// ask twice is to ask once. An operation that is to be abandoned stays so.
func (s *service) cancel(ctx context.Context, c front.Call, in admin.OperationCancelRequest) (admin.Operation, error) {
	if !operation.ValidID(in.ID) {
		return admin.Operation{}, unknown(in.ID)
	}
	var out admin.Operation
	err := s.Retry(ctx, func() error {
		r, err := state.View[operation.Record](s.Cache, state.Operation(in.ID))
		if errors.Is(err, state.ErrNotFound) {
			return unknown(in.ID)
		}
		if err != nil {
			return err
		}
		if err := c.Spared(r.Value.About.ARN()); err != nil {
			return err
		}
		if r.Value.State.Ended() {
			return admin.NewError(admin.CodeOperationEnded, fmt.Sprintf("The operation %s has ended: it is %s.", in.ID, r.Value.State), "")
		}
		out = s.shown(r.Value)
		out.Cancelling = true
		wish, err := state.Load[operation.Wish](s.Cache, state.OperationCancel(in.ID))
		if err == nil && (wish.Value.Abandon || !in.Abandon) {
			return nil
		}
		s.log.Info("operation is to be cancelled", "id", in.ID, "abandon", in.Abandon, "by", c.Who.Key)
		return s.Commit(ctx, state.Swap(state.OperationCancel(in.ID), wish.Revision, operation.Wish{By: c.Who.Key, At: c.Now.UTC(), Abandon: in.Abandon}))
	})
	return out, err
}

// Late returns problems: one for each operation that should have ended, of one database or of all.
func Late(cache *state.Cache, now time.Time, database string) []admin.Problem {
	var all []admin.Problem
	for _, r := range kept(cache) {
		if !r.Late(now) || database != "" && r.About.Database != database {
			continue
		}
		text := fmt.Sprintf("the operation %s (%s) should have ended at %s, and goes on", r.ID, r.Kind, r.Deadline.UTC().Format("2006-01-02 15:04:05Z"))
		if r.Step != "" {
			text += fmt.Sprintf(": it is at %s since %s", r.Step, r.StepBegan.UTC().Format("2006-01-02 15:04:05Z"))
		}
		if r.Trouble != "" {
			text += " (" + r.Trouble + ")"
		}
		if len(r.Excludes) > 0 {
			var held []string
			for _, d := range r.Excludes {
				held = append(held, string(d))
			}
			text += "; until it ends it holds up: " + strings.Join(held, ", ")
		}
		all = append(all, admin.Problem{
			Code: admin.ProblemLate, Subject: "db " + r.About.Name, ResourceID: r.About.Database, Text: text, Command: "howdah operations show " + r.ID,
		})
	}
	return all
}

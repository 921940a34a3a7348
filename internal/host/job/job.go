// Package job does on a host what operations ask of it and what takes minutes or hours, such as a
// backup. The agent follows its host's jobs in etcd (model/member.Job), and has each done by the
// Kind that knows how.
//
// Invariants:
//   - A job is begun after its report says so, and after it is noted on disk. What is noted goes on
//     whatever becomes of the agent and of the control planes: an agent that starts runs it again,
//     with Call.Resume.
//   - What came of a job is noted on disk before it is reported, so it comes once.
//   - A report is written only if the key of exactly this job is still there. An agent that was
//     paused reports nothing of a job that was asked for anew, here or elsewhere.
//   - When the key is gone nothing of the job is left: no process, no file, no report.
//   - Nothing of a turn is begun that is lower than one seen of the same operation.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"howdah/internal/model/member"
)

// Kind is how jobs of a kind are done.
type Kind struct {
	Name string
	// Run does a job. What it returns is encoded as the result, of MostResult bytes at most. After
	// an error the operation may ask again, unless the error is one of Final. Run returns soon
	// after ctx ends: then the agent ends, or nobody wants the job any more.
	//
	// Run is called again with Call.Resume if an agent ended while it ran. It finds out for itself
	// what was done.
	Run func(ctx context.Context, call Call) (result any, err error)
	// Light says that jobs of the kind take little of the disk and the processors. Of others a
	// host does two at a time.
	Light bool
	// Adopts says that programs which Run has started go on when the agent ends, and that Run, when
	// it resumes, waits for them by Call.Adopt. Otherwise they are killed before Run is called again.
	Adopts bool
}

// MostResult is how many bytes the result of a job has at most, as JSON.
const MostResult = 8 << 10

// Call is one call of a kind's Run.
type Call struct {
	member.Job
	// Resume says that an earlier agent had begun the job.
	Resume bool
	// Dir is a directory of the job's own, which only root may change, and which others may pass
	// through. It is removed with all that is in it when the job is forgotten.
	Dir string

	work *work
}

// Decode reads the arguments. An error is final.
func (c Call) Decode(into any) error {
	if err := json.Unmarshal(c.Args, into); err != nil {
		return Final(fmt.Errorf("read the arguments of job %s: %w", c.Name, err))
	}
	return nil
}

// Progress tells how far the job is; of is 0 if nobody knows. It is reported once a second at most,
// and may be called as often as one likes.
func (c Call) Progress(done, of int64, unit string) { c.work.progress(done, of, unit) }

// Tell tells others of something while the job goes on, in place of its result. It is forgotten when
// the job ends, and if the agent ends, unless Run tells of it again.
func (c Call) Tell(of any) error {
	text, err := encode(of)
	if err != nil {
		return err
	}
	c.work.reporter.change(func(r *member.JobReport) { r.Result = text })
	return nil
}

// Ends reports whether the agent ends, and not just the job. Then the programs of a kind that Adopts
// go on.
func (c Call) Ends() bool { return c.work.agentEnds() }

// errFinal marks what another try would not mend.
var errFinal = errors.New("for good")

// Final is a failure that another try, here or on another host, would not mend.
func Final(err error) error { return finalError{err} }

// IsFinal reports whether an error is one of Final.
func IsFinal(err error) bool { return errors.Is(err, errFinal) }

type finalError struct{ error }

func (f finalError) Unwrap() []error { return []error{f.error, errFinal} }

package pgbench

import (
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// processors is how many of them this machine has for us.
func processors() int { return runtime.GOMAXPROCS(0) }

var progressForm = regexp.MustCompile(`^progress: (\d+)\.(\d{3}) s, (\d+(?:\.\d+)?) tps, lat (\d+(?:\.\d+)?) ms stddev (\d+(?:\.\d+)?)(?:, (\d+) failed)?`)

// ParseProgress reads a line that pgbench says each second, with the option --progress-timestamp. From
// version 15 on the lines have all of a Second. A second without a transaction has a latency of 0.
func ParseProgress(line string) (s Second, ok bool) {
	line = strings.ReplaceAll(line, "-nan", "0")
	line = strings.ReplaceAll(line, "nan", "0")
	m := progressForm.FindStringSubmatch(line)
	if m == nil {
		return s, false
	}
	seconds, _ := strconv.ParseInt(m[1], 10, 64)
	thousandths, _ := strconv.ParseInt(m[2], 10, 64)
	s.At = time.UnixMilli(seconds*1000 + thousandths).UTC()
	s.TPS, _ = strconv.ParseFloat(m[3], 64)
	s.Latency, _ = strconv.ParseFloat(m[4], 64)
	s.Stddev, _ = strconv.ParseFloat(m[5], 64)
	s.Failed, _ = strconv.Atoi(m[6]) // none before version 15
	return s, true
}

var (
	processedForm  = regexp.MustCompile(`^number of transactions actually processed: (\d+)`)
	failedForm     = regexp.MustCompile(`^number of failed transactions: (\d+)`)
	lateForm       = regexp.MustCompile(`^number of transactions above the .* ms latency limit: (\d+)`)
	skippedForm    = regexp.MustCompile(`^number of transactions skipped: (\d+)`)
	latencyForm    = regexp.MustCompile(`^latency average = (\d+(?:\.\d+)?) ms`)
	connectingForm = regexp.MustCompile(`^(?:initial connection time|average connection time) = (\d+(?:\.\d+)?) ms`)
	tpsForm        = regexp.MustCompile(`^tps = (\d+(?:\.\d+)?)`)
	scriptForm     = regexp.MustCompile(`^SQL script (\d+): (.*)$`)
	scriptDone     = regexp.MustCompile(`^ - (\d+) transactions \(.*tps = (\d+(?:\.\d+)?)\)`)
	scriptLatency  = regexp.MustCompile(`^ - latency average = (\d+(?:\.\d+)?) ms`)
)

// summary reads what pgbench says at its end.
func (r *Result) summary(text string) error {
	known := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case whole(processedForm, line, &r.Transactions), decimal(tpsForm, line, &r.TPS):
			known++
		case whole(failedForm, line, &r.Failed), whole(lateForm, line, &r.Late), whole(skippedForm, line, &r.Skipped), decimal(latencyForm, line, &r.Latency):
		default:
			r.ofScript(line)
			var ms float64
			if decimal(connectingForm, line, &ms) {
				r.Connecting = time.Duration(ms * float64(time.Millisecond))
			}
		}
	}
	// Of a run without a transaction it says no rate.
	if none := known == 1 && r.Transactions == 0 && strings.Contains(text, "actually processed: 0"); known != 2 && !none {
		return fmt.Errorf("%w: %.400s", ErrSays, text)
	}
	return nil
}

// ofScript reads a line about one of several scripts.
func (r *Result) ofScript(line string) {
	if m := scriptForm.FindStringSubmatch(line); m != nil {
		r.Scripts = append(r.Scripts, ScriptResult{Name: m[2]})
		return
	}
	if len(r.Scripts) == 0 {
		return
	}
	last := &r.Scripts[len(r.Scripts)-1]
	if m := scriptDone.FindStringSubmatch(line); m != nil {
		last.Transactions, _ = strconv.Atoi(m[1])
		last.TPS, _ = strconv.ParseFloat(m[2], 64)
	}
	decimal(scriptLatency, line, &last.Latency)
}

func whole(form *regexp.Regexp, line string, to *int) bool {
	m := form.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	*to, _ = strconv.Atoi(m[1])
	return true
}

func decimal(form *regexp.Regexp, line string, to *float64) bool {
	m := form.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	*to, _ = strconv.ParseFloat(m[1], 64)
	return true
}

package result

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/stats"
	"howdah/internal/lab/verdict"
	"howdah/internal/observe/series"
)

// Mark is a moment of a point that plots show: a fault, or its end.
type Mark struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Observation is what was seen of the target while one step of a point made its load. Warm-up is left
// out.
type Observation struct {
	// Prefix is that of the step's figures.
	Prefix string `json:"prefix,omitempty"`
	// Failed says why nothing was seen, or not all; "": all went well.
	Failed string `json:"failed,omitempty"`
	// Missing has what cannot be seen of this target, in words.
	Missing []string `json:"missing,omitempty"`
	// Load is what the load generator says of itself.
	Load verdict.Load `json:"load"`
	// Elsewhere says that no process of the server is seen on this machine: what is known of a machine is
	// known of this one, where the load generator runs.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// Observed sums up what was seen each second, by column.
	Observed series.Summary `json:"observed"`
	// Counters has those of the server's statistics that grew, by column, over the whole step.
	Counters map[string]Change `json:"counters,omitempty"`
	// Standbys has the positions and lags of each standby when the load ended, by its name.
	Standbys map[string]map[string]float64 `json:"standbys,omitempty"`
	// Verdict says what limited the load.
	Verdict verdict.Verdict `json:"verdict"`
}

// Change is a counter before and after.
type Change struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Judge says anew what limited the load. sweep has the medians of settings with more and with fewer
// clients; it may be nil.
func (o *Observation) Judge(sweep []verdict.Step) {
	o.Verdict = verdict.Judge(verdict.Evidence{Observed: o.Observed, Load: o.Load, Elsewhere: o.Elsewhere, Sweep: sweep})
}

// Limit is what limited a step of a setting: what most of its runs say.
type Limit struct {
	Prefix string `json:"prefix,omitempty"`
	verdict.Finding
	// Agree is how many of the runs say so, and Runs how many say anything.
	Agree int `json:"agree"`
	Runs  int `json:"runs"`
	// Disturbed is how many of the runs something else disturbed, and Why says what in the worst.
	Disturbed int              `json:"disturbed,omitempty"`
	Why       []verdict.Reason `json:"why,omitempty"`
	// Others has what the other runs say, each once.
	Others []verdict.Finding `json:"others,omitempty"`
}

// Sweep has the settings that differ in one factor alone, which is how many clients there are.
type Sweep struct {
	Factor   string
	Settings []string // their keys
	Steps    []verdict.Step
}

// judge says what limited each point and each setting, once all are measured.
func (r *Result) judge(e *experiment.Experiment) {
	steps := map[string][]verdict.Step{}
	for _, s := range r.Sweeps(e) {
		for _, key := range s.Settings {
			steps[key] = s.Steps
		}
	}
	for n := range r.Points {
		for i := range r.Points[n].Observed {
			o := &r.Points[n].Observed[i]
			if o.Observed.Rows > 0 {
				o.Judge(steps[r.Points[n].Setting])
			}
		}
	}
	for n := range r.Settings {
		r.Settings[n].Limits = r.limits(r.Settings[n].Setting)
	}
}

// Sweeps finds the factor that is the number of clients, and the settings that differ in it alone, in
// the order of its levels. There is none if the experiment has no such factor.
func (r *Result) Sweeps(e *experiment.Experiment) []Sweep {
	factor := r.clientsFactor(e)
	if factor == "" {
		return nil
	}
	var all []Sweep
	at := map[string]int{}
	for _, s := range e.Settings() {
		loads := r.loads(e.Key(s))
		if len(loads) == 0 {
			continue
		}
		others := maps.Clone(s)
		delete(others, factor)
		name := e.Key(others)
		n, there := at[name]
		if !there {
			n, at[name] = len(all), len(all)
			all = append(all, Sweep{Factor: factor})
		}
		var tps []float64
		for _, l := range loads {
			tps = append(tps, l.TPS)
		}
		all[n].Settings = append(all[n].Settings, e.Key(s))
		all[n].Steps = append(all[n].Steps, verdict.Step{Clients: loads[0].Clients, TPS: stats.Median(tps)})
	}
	return all
}

// clientsFactor returns the factor whose level is the number of clients in each point.
func (r *Result) clientsFactor(e *experiment.Experiment) string {
	for _, f := range e.Factors {
		same, seen := len(f.Levels) > 1, false
		for _, p := range r.Points {
			if len(p.Observed) == 0 || p.Observed[0].Load.Clients == 0 {
				continue
			}
			level, isNumber := p.Levels[f.Name].(float64)
			same, seen = same && isNumber && int(level) == p.Observed[0].Load.Clients, true
		}
		if same && seen {
			return f.Name
		}
	}
	return ""
}

// loads returns what the load generator said in the points of a setting that count: of the first step
// that was observed.
func (r *Result) loads(key string) []verdict.Load {
	var all []verdict.Load
	for _, p := range r.counted(key) {
		if len(p.Observed) > 0 && p.Observed[0].Load.Clients > 0 {
			all = append(all, p.Observed[0].Load)
		}
	}
	return all
}

// limits sums up the verdicts of the points of a setting that count, by step.
func (r *Result) limits(key string) []Limit {
	var prefixes []string
	byStep := map[string][]verdict.Verdict{}
	for _, p := range r.counted(key) {
		for _, o := range p.Observed {
			if o.Observed.Rows == 0 {
				continue
			}
			if byStep[o.Prefix] == nil {
				prefixes = append(prefixes, o.Prefix)
			}
			byStep[o.Prefix] = append(byStep[o.Prefix], o.Verdict)
		}
	}
	var all []Limit
	for _, prefix := range prefixes {
		all = append(all, limitOf(prefix, byStep[prefix]))
	}
	return all
}

// limitOf takes what most say; of equal numbers, what came first. Noise does not count as a limit: it
// is told beside it.
func limitOf(prefix string, verdicts []verdict.Verdict) Limit {
	l := Limit{Prefix: prefix, Runs: len(verdicts)}
	counts := map[string]int{}
	// One sentence is one limit: the event that most waited for may be another in each run.
	name := func(f verdict.Finding) string { return f.Sentence }
	for _, v := range verdicts {
		counts[name(v.Limit())]++
	}
	most := slices.MaxFunc(verdicts, func(a, b verdict.Verdict) int {
		return cmp.Compare(counts[name(a.Limit())], counts[name(b.Limit())])
	})
	l.Finding, l.Agree = most.Limit(), counts[name(most.Limit())]
	seen := map[string]bool{name(l.Finding): true}
	for _, v := range verdicts {
		if f := v.Limit(); !seen[name(f)] {
			seen[name(f)] = true
			l.Others = append(l.Others, f)
		}
		if v.Cause == verdict.Noise {
			l.Disturbed++
			if len(v.Reasons) > 0 && (len(l.Why) == 0 || worse(v.Reasons[0], l.Why[0])) {
				l.Why = v.Reasons
			}
		}
	}
	return l
}

func worse(a, b verdict.Reason) bool {
	return len(a.Figures) > 0 && len(b.Figures) > 0 && a.Key == b.Key && a.Figures[0].Value > b.Figures[0].Value
}

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"howdah/internal/lab/result"
	"howdah/internal/lab/stats"
	"howdah/internal/lab/verdict"
	"howdah/internal/observe/series"
)

// limitView says what limited one setting.
type limitView struct {
	Setting   string
	Sentence  string
	Aside     string // the sentence if the noise is left aside, where all runs were disturbed
	Evidence  []string
	Agree     string
	Disturbed string
	Others    []string
}

// limits has one for each step of each setting that was observed.
func (w writer) limits() (all []limitView) {
	for _, s := range w.r.Settings {
		for _, l := range s.Limits {
			v := limitView{Setting: w.nameOf(s.Levels), Sentence: w.sentence(l.Finding), Evidence: w.reasons(l.Reasons)}
			if l.Prefix != "" {
				v.Setting = strings.TrimPrefix(v.Setting+", "+strings.TrimSuffix(l.Prefix, "_"), ", ")
			}
			v.Agree = fmt.Sprintf(word(w.language, "agree"), l.Agree, l.Runs)
			if l.Disturbed > 0 {
				if l.Disturbed == l.Runs {
					v.Sentence, v.Aside = w.sentence(verdict.Disturbed), word(w.language, "aside")+v.Sentence
				}
				v.Disturbed = fmt.Sprintf(word(w.language, "disturbed"), l.Disturbed, l.Runs, strings.Join(w.reasons(l.Why), " "))
			}
			for _, f := range l.Others {
				v.Others = append(v.Others, w.sentence(f))
			}
			all = append(all, v)
		}
	}
	return all
}

// knees says where more clients stop to give more. That is a statement about medians: it is not made of
// runs that vary.
func (w writer) knees() (all []string) {
	for _, s := range w.r.Sweeps(w.e) {
		if w.r.Quick || w.e.Runs < stats.FewestRuns || len(s.Steps) < 2 || w.unsteady(s.Settings) {
			continue
		}
		where := ""
		if rest := w.rest(w.levels(s.Settings[0]), s.Factor); rest != "" {
			where = rest + ": "
		}
		if knee, found := verdict.Knee(s.Steps); found {
			text := where + fmt.Sprintf(word(w.language, "knee"), knee.Clients, short(knee.TPS))
			if w.clientsLimit(s, knee.Clients) {
				text += " " + word(w.language, "knee_client")
			}
			all = append(all, text)
		} else {
			all = append(all, where+fmt.Sprintf(word(w.language, "no_knee"), s.Steps[len(s.Steps)-1].Clients))
		}
	}
	return all
}

// clientsLimit reports whether the load generator limits a step of a sweep with more than so many clients.
func (w writer) clientsLimit(s result.Sweep, clients int) bool {
	return slices.ContainsFunc(w.r.Settings, func(setting result.Setting) bool {
		n := slices.Index(s.Settings, setting.Setting)
		return n >= 0 && s.Steps[n].Clients > clients && len(setting.Limits) > 0 && setting.Limits[0].Cause == verdict.Client
	})
}

func (w writer) unsteady(keys []string) bool {
	return slices.ContainsFunc(w.r.Settings, func(s result.Setting) bool {
		return slices.Contains(keys, s.Setting) && slices.ContainsFunc(rates, func(rate string) bool { return s.Figures[rate].Unsteady() })
	})
}

func (w writer) levels(key string) map[string]any {
	for _, s := range w.r.Settings {
		if s.Setting == key {
			return s.Levels
		}
	}
	return nil
}

// sentence is a finding in the language of the report.
func (w writer) sentence(f verdict.Finding) string {
	form, known := japanese[f.Key]
	if w.language != "ja" || !known {
		return f.Sentence
	}
	return strings.ReplaceAll(form, "{subject}", strings.TrimPrefix(f.Subject, "LWLock:"))
}

// reasons are the evidence in the language of the report.
func (w writer) reasons(all []verdict.Reason) (texts []string) {
	for _, r := range all {
		form, known := reasonsJapanese[r.Key]
		if w.language != "ja" || !known {
			texts = append(texts, r.Text)
			continue
		}
		texts = append(texts, filled(form, r.Figures))
	}
	return texts
}

// filled puts figures into a form: {0} is the first one with its unit, {0n} what its name is about.
func filled(form string, figures []verdict.Figure) string {
	for n, f := range figures {
		form = strings.ReplaceAll(form, fmt.Sprintf("{%d}", n), figureText(f.Value, f.Unit))
		form = strings.ReplaceAll(form, fmt.Sprintf("{%dt}", n), figureText(f.Threshold, f.Unit))
		form = strings.ReplaceAll(form, fmt.Sprintf("{%dn}", n), about(f.Name))
	}
	return form
}

func figureText(value float64, unit string) string {
	switch unit {
	case "share":
		digits := 0
		if value != 0 && math.Abs(value) < 0.1 {
			digits = 1
		}
		return fmt.Sprintf("%.*f %%", digits, 100*value)
	case "bytes/s":
		return short(value/1e6) + " MB/s"
	case "ms":
		return threeDigits(value) + " ms"
	default:
		return threeDigits(value)
	}
}

func threeDigits(value float64) string {
	if math.Abs(value) >= 100 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}

// about is the wait, the relation or the standby that a column is of.
func about(column string) string {
	for _, prefix := range []string{series.WaitPrefix, series.LockOnPrefix, series.StandbyPrefix} {
		if rest, ok := strings.CutPrefix(column, prefix); ok {
			if prefix == series.StandbyPrefix {
				rest = rest[:max(0, strings.LastIndex(rest, "."))]
			}
			return rest
		}
	}
	return column
}

package report

import "slices"

// prefixes lists those of the steps that have a figure, in the order of their names.
func (w writer) prefixes(figure string) []string {
	seen := map[string]bool{}
	for _, s := range w.r.Settings {
		for name := range s.Figures {
			if _, prefix := lookUp(name); prefix+figure == name {
				seen[prefix] = true
			}
		}
	}
	return inOrder(seen)
}

// mainFigures are those that are compared, or the throughput where nothing is.
func (w writer) mainFigures() []string {
	var all []string
	for _, c := range w.e.Compare {
		if !slices.Contains(all, c.Figure) {
			all = append(all, c.Figure)
		}
	}
	for _, rate := range rates {
		for _, prefix := range w.prefixes(rate) {
			if len(w.e.Compare) == 0 || rate != "tpm" && !slices.Contains(all, prefix+rate) {
				all = append(all, prefix+rate)
			}
		}
	}
	return slices.Compact(all)
}

// plots draws all that there is to draw.
func (w writer) plots() (all []Plot, err error) {
	add := func(p Plot, bad error) {
		if bad != nil && err == nil {
			err = bad
		}
		if len(p.SVG) > 0 {
			all = append(all, p)
		}
	}
	f := swept(w.e)
	for _, figure := range w.mainFigures() {
		if f != nil {
			add(w.sweep(*f, figure))
		}
	}
	for _, c := range w.e.Compare {
		add(w.ratios(c))
	}
	for _, prefix := range w.prefixes("aas") {
		add(w.waits(prefix))
	}
	for _, prefix := range w.prefixes("latency_p50_ms") {
		add(w.latency(prefix))
	}
	for _, prefix := range w.prefixes("new_order_p95_ms") {
		if f != nil {
			add(w.transactions(*f, prefix))
		}
	}
	for _, name := range w.secondsNames() {
		more, bad := w.seconds(name)
		if bad != nil && err == nil {
			err = bad
		}
		all = append(all, more...)
	}
	return all, err
}

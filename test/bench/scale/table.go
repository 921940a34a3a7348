package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// names has the rows of the table, in order.
var names = []string{
	"DescribeDBInstances, page of 100", "DescribeDBInstances, one by name", "ModifyDBInstance", "a change reaches its host",
	"with changes, round", "at rest, round", "at rest, share of a CPU", "create, calls per second", "create, all serve after",
	"memory (RSS), now", "memory (RSS), at most", "start, leads after", "start, looked at all after", "start, memory (RSS)",
}

// table prints a column for each number of instances.
func table(out io.Writer, results []result) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "instances")
	for _, r := range results {
		fmt.Fprintf(w, "\t%d on %d hosts", r.size, r.hosts)
	}
	fmt.Fprintln(w)
	for _, name := range names {
		fmt.Fprint(w, name)
		for _, r := range results {
			fmt.Fprintf(w, "\t%s", r.values[name])
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
	fmt.Fprintln(out, "Times are median / 99th percentile / greatest, in ms.")
}

// spread stores the median, the 99th percentile and the greatest of many times.
func spread(values map[string]string, name string, took []time.Duration) {
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[min(int(share*float64(len(took))), len(took)-1)]) / float64(time.Millisecond)
	}
	values[name] = fmt.Sprintf("%.1f / %.1f / %.1f", at(0.5), at(0.99), at(1))
}

// rounds stores the spread of the times of rounds.
func rounds(values map[string]string, name string, all []Round) {
	var took []time.Duration
	for _, r := range all {
		took = append(took, r.Took)
	}
	spread(values, name, took)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

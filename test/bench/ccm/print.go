package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func (t turn) String() string {
	kind := map[bool]string{true: "warm", false: "cold"}[t.warm]
	back := "not"
	if t.back > 0 {
		back = t.back.String()
	}
	return fmt.Sprintf("   %s: the standby has %d of %d buffers of pgbench_accounts; %.0f TPS before; load again after %.1f s; back at 90 %% after %s; %.2f %% cached in the first 10 s",
		kind, t.reader, t.writer, t.before, t.took.Seconds(), back, t.hit)
}

// print writes the medians, and the series of each second.
func (b *bench) print() {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "standby\tn\tbuffers of pgbench_accounts, standby / primary (least, greatest)\tTPS before\tback at 90 %, median (least, greatest)\tcached in the first 10 s\tTPS in the first 10 s / before")
	for _, warm := range []bool{true, false} {
		var before, back, hit, early, alike []float64
		for _, t := range b.turns {
			if t.warm != warm {
				continue
			}
			before, hit = append(before, t.before), append(hit, t.hit)
			alike = append(alike, float64(t.reader)/float64(max(1, t.writer)))
			early = append(early, mean(t.series[:min(10, len(t.series))])/t.before)
			if t.back == 0 {
				t.back = b.after // at least
			}
			back = append(back, t.back.Seconds())
		}
		fmt.Fprintf(table, "%s\t%d\t%.3f (%.3f, %.3f)\t%.0f\t%.0f s (%.0f, %.0f)\t%.2f %%\t%.2f\n", map[bool]string{true: "warm", false: "cold"}[warm], len(back),
			median(alike), slices.Min(alike), slices.Max(alike), median(before), median(back), slices.Min(back), slices.Max(back), median(hit), median(early))
	}
	_ = table.Flush()
	fmt.Println("\nTPS of each second after the failover, medians:")
	fmt.Println("second  warm    cold")
	for n := range int(b.after / time.Second) {
		fmt.Printf("%6d  %6.0f  %6.0f  %s\n", n+1, b.second(n, true), b.second(n, false), b.bar(n))
	}
}

// second is the median of a second of all turns of a kind.
func (b *bench) second(n int, warm bool) float64 {
	var all []float64
	for _, t := range b.turns {
		if t.warm == warm && n < len(t.series) {
			all = append(all, t.series[n])
		}
	}
	return median(all)
}

// bar draws both: w for the warm one, c for the cold one, and * where they meet.
func (b *bench) bar(n int) string {
	most := 1.0
	for _, t := range b.turns {
		most = max(most, slices.Max(append([]float64{1}, t.series...)))
	}
	line := []byte(strings.Repeat(" ", 61))
	w, c := int(60*b.second(n, true)/most), int(60*b.second(n, false)/most)
	line[w], line[c] = 'w', 'c'
	if w == c {
		line[w] = '*'
	}
	return strings.TrimRight(string(line), " ")
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(max(1, len(all)))
}

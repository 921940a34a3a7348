package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/pgbackrest"
)

// machine is where it was measured, and with what.
type machine struct {
	CPU        string    `json:"cpu"`
	CPUs       int       `json:"cpus"`
	Memory     int64     `json:"memory_bytes"`
	Kernel     string    `json:"kernel"`
	Files      string    `json:"file_system"`
	Howdah     string    `json:"howdah"`
	PostgreSQL string    `json:"postgresql"`
	Engine     string    `json:"engine"`
	Load       string    `json:"load_before"`
	Began      time.Time `json:"began"`
}

var cpuForm = regexp.MustCompile(`(?m)^model name\s*: (.+)$`)

// look says what this machine is.
func look(ctx context.Context, b *bench) (machine, error) {
	m := machine{CPUs: runtime.NumCPU(), Began: b.began.UTC()}
	engine, err := pgbackrest.Find()
	if err != nil {
		return m, err
	}
	m.Engine = engine.Name()
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := cpuForm.FindSubmatch(text); found != nil {
			m.CPU = string(found[1])
		}
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(text), " ")
	}
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err == nil {
		m.Memory = int64(s.Totalram) * int64(s.Unit)
	}
	for to, command := range map[*string]string{
		&m.Kernel: "uname -r", &m.Files: "findmnt -n -o FSTYPE,SOURCE -T " + b.tmp, &m.Howdah: b.binary + " --version", &m.PostgreSQL: "pgbench --version",
	} {
		words := strings.Fields(command)
		out, err := exec.CommandContext(ctx, words[0], words[1:]...).Output()
		if err != nil {
			return m, fmt.Errorf("%s: %w", command, err)
		}
		*to = strings.Join(strings.Fields(string(out)), " ")
	}
	m.PostgreSQL = strings.Replace(m.PostgreSQL, "pgbench", "PostgreSQL", 1)
	return m, nil
}

func (b *bench) print(out io.Writer, m machine) {
	fmt.Fprintf(out, "%s · %s · %s\n", m.Howdah, m.PostgreSQL, m.Engine)
	fmt.Fprintf(out, "%d × %s, %.0f GiB of memory, Linux %s, %s; load %s before it began, %s\n\n",
		m.CPUs, m.CPU, float64(m.Memory)/(1<<30), m.Kernel, m.Files, m.Load, m.Began.Format(time.DateTime+"Z"))
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "what\ttarget\tunit\tn\tmedian\tgreatest\tleast\t")
	for _, r := range b.rows {
		switch {
		case r.Err != "":
			fmt.Fprintf(w, "%s\t\t\t\tnot measured: %s\t\t\t\n", r.Name, strings.ReplaceAll(r.Err, "\n", "; "))
		case r.GB == b.size || r.GB == 0:
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.2f\t%.2f\t%.2f\t%s\n",
				r.Name, r.Target, r.Unit, len(r.Values), median(r.Values), slices.Max(r.Values), slices.Min(r.Values), r.remark())
		}
	}
	w.Flush()
	b.printGrowth(out)
}

// remark says whether the target was missed, and the note.
func (r row) remark() string {
	if !r.Target.met(r.Values) {
		return strings.TrimSuffix("MISSED; "+r.Note, "; ")
	}
	return r.Note
}

// printGrowth prints a column for each size, if there is more than one.
func (b *bench) printGrowth(out io.Writer) {
	var sizes []float64
	for _, r := range b.rows {
		if r.GB != 0 && r.Err == "" && !slices.Contains(sizes, r.GB) {
			sizes = append(sizes, r.GB)
		}
	}
	if len(sizes) < 2 {
		return
	}
	slices.Sort(sizes)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nhow it grows, medians\t")
	for _, size := range sizes {
		fmt.Fprintf(w, "%g GB\t", size)
	}
	fmt.Fprintln(w)
	var seen []string
	for _, r := range b.rows {
		if r.GB == 0 || r.Err != "" || slices.Contains(seen, r.Name) {
			continue
		}
		seen = append(seen, r.Name)
		fmt.Fprintf(w, "%s, %s\t", r.Name, cmp.Or(r.Unit, "ratio"))
		for _, size := range sizes {
			text := ""
			for _, other := range b.rows {
				if other.Name == r.Name && other.GB == size && len(other.Values) > 0 {
					text = fmt.Sprintf("%.2f", median(other.Values))
				}
			}
			fmt.Fprintf(w, "%s\t", text)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

func (b *bench) save(m machine) error {
	text, err := json.MarshalIndent(map[string]any{"machine": m, "gb": b.size, "rounds": b.rounds, "rows": b.rows}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode figures: %w", err)
	}
	return os.WriteFile(b.json, append(text, '\n'), 0o644)
}

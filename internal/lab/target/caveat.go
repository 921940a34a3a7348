package target

import (
	"context"
	"fmt"
	"slices"

	"howdah/internal/admin"
	"howdah/internal/lab/experiment"
	"howdah/internal/model/spec"
)

// Caveats says what of the servers that are wanted this Howdah cannot give, though it makes them: a class
// is a limit, and a host with less has less.
func (h *Howdah) Caveats(ctx context.Context, all []experiment.Wanted) ([]string, error) {
	var status admin.Status
	if err := h.API.Admin(ctx, admin.VerbStatus, admin.Nothing{}, &status); err != nil {
		return nil, err
	}
	return caveats(status.Hosts, all), nil
}

func caveats(hosts []admin.Host, all []experiment.Wanted) (texts []string) {
	cpus, memory := 0, int64(0)
	for _, host := range hosts {
		cpus, memory = max(cpus, host.CPUs), max(memory, host.Memory)
	}
	for _, w := range all {
		c, known := spec.LookupClass(w.Class)
		if !known || c.CPUs <= cpus && c.Memory <= memory {
			continue
		}
		text := fmt.Sprintf("the class %s has %d processors and %d GiB, and the largest host has %d and %d: its figures are those of the host", c.Name, c.CPUs, c.Memory>>30, cpus, memory>>30)
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

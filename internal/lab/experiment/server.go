package experiment

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Server is an instance or a cluster that Howdah makes. Its values may name factors, as those of steps.
type Server struct {
	Class   any `json:"class,omitempty"`
	Storage any `json:"storage,omitempty"` // GiB
	IOPS    any `json:"iops,omitempty"`
	MultiAZ any `json:"multi_az,omitempty"`
	// Standbys is how many replicas there are besides. Nodes is one more than that, in its place.
	Standbys any `json:"standbys,omitempty"`
	Nodes    any `json:"nodes,omitempty"`
	// Cluster makes an Aurora cluster of that many nodes in place of an instance.
	Cluster any `json:"cluster,omitempty"`
	// Warm turns cluster cache management on: one standby keeps its cache like the primary's.
	Warm any `json:"warm,omitempty"`
	// Backups is for how many days automated backups are kept: 0, none are made, and no WAL is archived.
	Backups any `json:"backups,omitempty"`
	// Parameters are those of its parameter group.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Wanted is a server as a setting wants it.
type Wanted struct {
	Class      string            `json:"class"`
	Storage    int               `json:"storage"` // GiB
	IOPS       int               `json:"iops"`    // 0: as many as the storage has by itself
	MultiAZ    bool              `json:"multi_az"`
	Standbys   int               `json:"standbys"`
	Cluster    bool              `json:"cluster"`
	Warm       bool              `json:"warm"`
	Backups    int               `json:"backups"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Same reports whether two servers are wanted alike.
func (w Wanted) Same(other Wanted) bool {
	return maps.Equal(w.Parameters, other.Parameters) && w.bare() == other.bare()
}

// Copies is how many copies of the data there are besides the primary's.
func (w Wanted) Copies() int {
	if w.MultiAZ {
		return w.Standbys + 1
	}
	return w.Standbys
}

// bare is a server without its parameters, which can be compared.
func (w Wanted) bare() [8]any {
	return [8]any{w.Class, w.Storage, w.IOPS, w.MultiAZ, w.Standbys, w.Cluster, w.Warm, w.Backups}
}

// Bounds and defaults of servers.
const (
	defaultClass    = "db.m3.medium"
	defaultStorage  = 20
	mostStandbys    = 15 // as on RDS
	mostStorage     = 65536
	mostIOPS        = 256_000
	leastStorage    = 5
	storageWithIOPS = 20
)

// Wanted returns the server of a setting.
func (e *Experiment) Wanted(s Setting) (w Wanted, err error) {
	text, err := json.Marshal(e.Server)
	if err != nil {
		return w, err
	}
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil {
		return w, err
	}
	filled, err := e.Fill(plain, s)
	if err != nil {
		return w, fmt.Errorf("server: %w", err)
	}
	values := filled.(map[string]any) //nolint:forcetypeassert // Fill keeps the form
	nodes, named := values["nodes"]
	delete(values, "nodes")
	if err := decode(values, &w); err != nil {
		return w, fmt.Errorf("%w: server: %w", ErrForm, err)
	}
	if named {
		n, ok := nodes.(float64)
		if !ok || w.Standbys != 0 || n != float64(int(n)) {
			return w, fmt.Errorf("%w: server: %w", ErrForm, wrong("nodes is a number, and excludes standbys"))
		}
		w.Standbys = int(n) - 1
	}
	if w.Class == "" {
		w.Class = defaultClass
	}
	if w.Storage == 0 {
		w.Storage = defaultStorage
	}
	if err := w.check(); err != nil {
		return w, fmt.Errorf("%w: server: %w", ErrForm, err)
	}
	return w, nil
}

func (w Wanted) check() error {
	switch {
	case w.Standbys < 0 || w.Standbys > mostStandbys:
		return wrong("standbys are %d, and not from 0 to %d", w.Standbys, mostStandbys)
	case w.Storage < leastStorage || w.Storage > mostStorage:
		return wrong("storage is %d GiB, and not from %d to %d", w.Storage, leastStorage, mostStorage)
	case w.IOPS < 0 || w.IOPS > mostIOPS || w.IOPS > 0 && w.IOPS < 100:
		return wrong("iops are %d, and not from 100 to %d", w.IOPS, mostIOPS)
	case w.IOPS > 0 && w.Storage < storageWithIOPS:
		return wrong("storage with iops of its own has at least %d GiB", storageWithIOPS)
	case w.Backups < 0 || w.Backups > 35:
		return wrong("backups are kept for %d days, and not for 0 to 35", w.Backups)
	case w.Cluster && (w.MultiAZ || w.IOPS > 0):
		return wrong("a cluster has neither multi_az nor iops")
	case w.Warm && !w.MultiAZ && (!w.Cluster || w.Standbys == 0):
		return wrong("warm needs multi_az, or a cluster with a standby")
	}
	return nil
}

// checkServer tries the server with each setting, also as a quick run has them.
func (e *Experiment) checkServer() error {
	for _, all := range []*Experiment{e, e.Quickly()} {
		for _, s := range all.Settings() {
			w, err := all.Wanted(s)
			if err == nil && w.Cluster && all.Restores() {
				err = fmt.Errorf("%w: server: %w", ErrForm, wrong("a cluster cannot be restored from a snapshot here: leave the step restore out, or take an instance"))
			}
			if err != nil {
				return fmt.Errorf("with %s: %w", all.Key(s), err)
			}
		}
	}
	return nil
}

// shapes reports whether settings want different servers.
func (e *Experiment) shapes() bool {
	var first Wanted
	for n, s := range e.Settings() {
		w, err := e.Wanted(s)
		if n == 0 {
			first = w
		} else if err == nil && !w.Same(first) {
			return true
		}
	}
	return false
}

package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"howdah/api/rds"
	"howdah/internal/admin/client"
	"howdah/internal/identity/home"
	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/own"
	"howdah/internal/lab/result"
)

// Howdah makes a database for one run of an experiment, in whatever form settings want it, and removes
// it afterwards. All that it makes has a name that begins with Identifier, and the tag Tag with the
// identifier. Nothing without that tag is ever changed or removed.
type Howdah struct {
	API *client.Client
	// Home is the home if it is on this machine, or nil.
	Home *home.Home
	// CA is the file of the authority that databases' certificates are of.
	CA string
	// Dir is that of the run. The password of the database is in a private file there.
	Dir        string
	Experiment string // its name
	// Keep leaves the database there afterwards.
	Keep bool
	// Clock says that the user lets the fault clock set the clock of this machine.
	Clock bool
	// Told is told what goes on. It may be nil.
	Told func(step string)

	record   record
	password string
	server   address.Server
	resource string // id of the database, which no other one ever has
	now      experiment.Wanted
}

// Tag is on all that the lab makes. Its value is the identifier of the run. Names that begin with howdah:
// are settings of Howdah itself.
const Tag = "howdah-lab"

// user is the master user.
const user = "lab"

var (
	// ErrNotOurs says that something has the name that the lab wants, and is not the lab's.
	ErrNotOurs = errors.New("it was not made by this run of howdah lab")
	// ErrGone says that a database of the lab was removed by somebody else.
	ErrGone = errors.New("somebody has removed the lab's database")
	// ErrFails says that a database cannot be made.
	ErrFails = errors.New("the database cannot be made")
)

// Name is that of the database, and of where it is.
func (h *Howdah) Name() string {
	if err := h.load(); err != nil {
		return "howdah"
	}
	return h.record.Identifier + " of " + h.API.Source
}

// Able lists what a Howdah can do. Hosts can be broken on this machine alone.
func (h *Howdah) Able() []string {
	all := []string{experiment.NeedHowdah, experiment.NeedWrites, experiment.NeedStandbys}
	if h.Home != nil {
		all = append(all, experiment.NeedFaults)
	}
	return all
}

// Open makes the database. If there is a snapshot of the data already, they are in it.
func (h *Howdah) Open(ctx context.Context, first experiment.Wanted) error {
	if err := h.load(); err != nil {
		return err
	}
	h.tell("look for what is left")
	if err := h.removeServers(ctx); err != nil {
		return err
	}
	there, err := h.hasSnapshot(ctx)
	if err != nil {
		return err
	}
	if there {
		return h.Restore(ctx, first)
	}
	return h.make(ctx, first)
}

// Become changes the database, or makes another one if that cannot be.
func (h *Howdah) Become(ctx context.Context, w experiment.Wanted) (anew bool, err error) {
	switch {
	case w.Same(h.now):
		return false, nil
	case h.now.Cluster != w.Cluster, w.Storage < h.now.Storage, w.Backups != h.now.Backups, !sameParameters(w, h.now):
		if err := h.removeServers(ctx); err != nil {
			return false, err
		}
		return true, h.make(ctx, w)
	}
	return false, h.modify(ctx, w)
}

func sameParameters(a, b experiment.Wanted) bool {
	b.Class, b.Storage, b.IOPS, b.MultiAZ, b.Standbys, b.Cluster, b.Warm, b.Backups = a.Class, a.Storage, a.IOPS, a.MultiAZ, a.Standbys, a.Cluster, a.Warm, a.Backups
	return a.Same(b)
}

// At is the endpoint, with TLS verified in full.
func (h *Howdah) At() address.Server { return h.server }

// Prepare makes the lab's schema in the database, which has nothing else.
func (h *Howdah) Prepare(ctx context.Context, clients int) error {
	return prepare(ctx, h.server, clients, false)
}

// Describe says what the database is.
func (h *Howdah) Describe(ctx context.Context) (result.Target, error) {
	machine := map[string]string{"class": h.now.Class, "storage_gib": strconv.Itoa(h.now.Storage)}
	return describe(ctx, h.server, result.Target{Name: h.Name(), Kind: "howdah", Machine: machine})
}

// Close removes all that was made, without a final snapshot.
func (h *Howdah) Close(ctx context.Context) error {
	if h.record.Identifier == "" || h.Keep {
		return nil
	}
	h.tell("remove the database")
	err := errors.Join(h.removeServers(ctx), h.removeSnapshot(ctx))
	if err == nil {
		err = h.removeGroups(ctx)
	}
	if err != nil {
		return fmt.Errorf("remove what the lab made: %w", err)
	}
	return h.forget()
}

func (h *Howdah) tell(step string) {
	if h.Told != nil {
		h.Told(step)
	}
}

// connects finds out how one connects to an endpoint, and keeps the password where pgbench finds it.
func (h *Howdah) connects(endpoint string) (address.Server, error) {
	uri := url.URL{
		Scheme: "postgresql", User: url.UserPassword(user, h.password), Host: endpoint, Path: "/postgres",
		RawQuery: url.Values{"sslmode": {"verify-full"}, "sslrootcert": {h.CA}}.Encode(),
	}
	return address.Parse(uri.String(), h.Dir)
}

func endpointOf(e *rds.Endpoint) string {
	if e == nil || e.Address == nil || e.Port == nil {
		return ""
	}
	return net.JoinHostPort(*e.Address, strconv.Itoa(int(*e.Port)))
}

// identifier is a name that RDS takes, of an experiment and a few random letters.
func identifier(experiment, id string) string {
	words := strings.FieldsFunc(experiment, func(r rune) bool { return r == '_' || r == '-' })
	return "lab-" + strings.Join(words, "-") + "-" + id
}

// passFile is where address.Parse keeps a password.
func (h *Howdah) passFile() string { return filepath.Join(h.Dir, "pgpass") }

// passPrefix is what the line of a password begins with: it is for every server.
const passPrefix = "*:*:*:*:"

// oldPassword is that of a run that was broken off.
func (h *Howdah) oldPassword() (string, error) {
	text, err := own.ReadFile(h.passFile())
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the password of the lab's database: %w", err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(text)), passPrefix), nil
}

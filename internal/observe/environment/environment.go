// Package environment tells what a report has to say of the server and of the machine that were
// measured: whoever repeats the measurement needs the same.
//
// Invariants:
//   - It only reads. It starts no program.
//   - No secret is in it: values that may hold one are masked.
//   - What is not known is absent.
package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/observe/counter"
	"howdah/internal/observe/machine"
)

// Environment is what was measured. Host and Storage are nil if the server is not on this machine.
type Environment struct {
	At       time.Time `json:"at"`
	Database Database  `json:"database"`
	Host     *Host     `json:"host,omitempty"`
	Storage  []Storage `json:"storage,omitempty"` // of the data directory, the WAL and the tablespaces
	// Limits has those of the server's control group: the instance class.
	Limits *machine.Limits `json:"limits,omitempty"`
	// Client is the machine that asked, if that is not the server's.
	Client *Host `json:"client,omitempty"`
	// Missing says in words what could not be read.
	Missing []string `json:"missing,omitempty"`
}

// Database is what the server says of itself.
type Database struct {
	Version    string    `json:"version"`     // all that version() says
	Number     int       `json:"number"`      // server_version_num
	SystemID   string    `json:"system_id"`   // tells clusters apart; "" if it may not be asked
	Started    time.Time `json:"started"`     // when it was started
	InRecovery bool      `json:"in_recovery"` // whether it is a standby
	Name       string    `json:"name"`        // of the database
	Encoding   string    `json:"encoding"`
	Collation  string    `json:"collation"`
	SizeBytes  int64     `json:"size_bytes"`
	Checksums  bool      `json:"checksums"` // of data pages
	// Settings has all whose value is not PostgreSQL's own default, by name.
	Settings map[string]Setting `json:"settings"`
	// Extensions has the versions of those in the database, by name.
	Extensions map[string]string `json:"extensions"`
	// Build has the options that it was configured with; "" if they may not be asked.
	Build    string    `json:"build,omitempty"`
	Standbys []Standby `json:"standbys,omitempty"` // in the order of their names
}

// Setting is one that is not the default.
type Setting struct {
	Value  string `json:"value"` // in Unit; "***" stands for a secret
	Unit   string `json:"unit,omitempty"`
	Source string `json:"source"` // as in pg_settings
}

// Standby is one that follows the server.
type Standby struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Sync  string `json:"sync"` // async, sync, quorum or potential
}

// Host is a machine.
type Host struct {
	CPUModel       string  `json:"cpu_model"`
	CPUs           int     `json:"cpus"`
	ThreadsPerCore int     `json:"threads_per_core,omitempty"`
	Governor       string  `json:"governor,omitempty"` // of the first CPU's clock
	MemoryBytes    float64 `json:"memory_bytes"`
	SwapBytes      float64 `json:"swap_bytes"`
	HugePages      float64 `json:"huge_pages"` // reserved
	HugePageBytes  float64 `json:"huge_page_bytes"`
	TransparentHP  string  `json:"transparent_huge_pages,omitempty"`
	Kernel         string  `json:"kernel"`
	System         string  `json:"system"`                   // the distribution
	Virtualisation string  `json:"virtualisation,omitempty"` // "" for none
	ClockSource    string  `json:"clock_source,omitempty"`
	// Sysctl has settings of the kernel that matter, by name, as in vm.swappiness.
	Sysctl map[string]string `json:"sysctl,omitempty"`
}

// Storage is what one part of the data is on.
type Storage struct {
	Part           string  `json:"part"` // data, wal, or a tablespace's oid
	FileSystem     string  `json:"file_system"`
	Options        string  `json:"options"` // of the mount
	SizeBytes      float64 `json:"size_bytes"`
	FreeBytes      float64 `json:"free_bytes"`
	Device         string  `json:"device,omitempty"` // the whole disk's name; "" for none
	Model          string  `json:"model,omitempty"`
	Scheduler      string  `json:"scheduler,omitempty"`
	Rotational     bool    `json:"rotational"`
	WriteCache     string  `json:"write_cache,omitempty"`
	ReadAheadBytes float64 `json:"read_ahead_bytes,omitempty"`
}

// readTimeout bounds one Read: the size of a database takes a look at each of its files.
const readTimeout = 30 * time.Second

// Read asks a server, and this machine. It needs a connection of its own, which it does not close.
// It fails only if the connection does.
func Read(ctx context.Context, conn *pgx.Conn, system machine.System) (Environment, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	who, err := counter.Ask(ctx, conn)
	if err != nil {
		return Environment{}, err
	}
	e := Environment{At: time.Now().UTC().Truncate(time.Second)}
	e.Database, e.Missing = readDatabase(ctx, conn)
	if conn.IsClosed() {
		return e, fmt.Errorf("read the environment: the connection was lost: %v", e.Missing)
	}
	host := ReadHost(system)
	postmaster, found := system.FindPostmaster(who.BackendPID, who.Backend)
	if !found {
		e.Client = &host
		return e, nil
	}
	e.Host = &host
	server, err := system.Server(postmaster)
	if err != nil {
		e.Missing = append(e.Missing, err.Error())
		return e, nil
	}
	limits := server.Limits()
	e.Limits = &limits
	e.Storage, err = readStorage(system, server)
	if err != nil {
		e.Missing = append(e.Missing, err.Error())
	}
	return e, nil
}

// Hash tells whether two environments are the same. It leaves out what changes by itself: times,
// sizes, the free space, and whether a standby is just catching up.
func (e Environment) Hash() string {
	e.At, e.Database.Started, e.Database.SizeBytes, e.Missing = time.Time{}, time.Time{}, 0, nil
	storage := make([]Storage, len(e.Storage))
	for i, s := range e.Storage {
		s.FreeBytes = 0
		storage[i] = s
	}
	e.Storage = storage
	standbys := slices.Clone(e.Database.Standbys)
	for i := range standbys {
		standbys[i].State = ""
	}
	e.Database.Standbys = standbys
	text, err := json.Marshal(e)
	if err != nil {
		return "" // numbers and strings can be marshalled
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

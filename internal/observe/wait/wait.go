// Package wait puts PostgreSQL's wait events into classes, over all versions: an event may be
// spelt differently from one to the next. It is pure.
package wait

import (
	"slices"
	"strings"

	"howdah/internal/observe/series"
)

// Class is what a session that is active does, or waits for.
type Class string

// The classes, in the order of charts.
const (
	CPU     Class = "cpu"
	IO      Class = "io"
	WAL     Class = "wal"
	Lock    Class = "lock"
	LWLock  Class = "lwlock"
	IPC     Class = "ipc"
	Client  Class = "client"
	Timeout Class = "timeout"
	Other   Class = "other"
)

// Classes lists them in the order of charts.
var Classes = []Class{CPU, IO, WAL, Lock, LWLock, IPC, Client, Timeout, Other}

// Column returns the name of the column that counts a class.
func (c Class) Column() string { return series.Active + "." + string(c) }

// Event is a wait as pg_stat_activity shows it. The zero value is no wait.
type Event struct {
	Type string // IO, Lock, …
	Name string // DataFileRead, transactionid, …
}

// onCPU is the name of no wait, as RDS calls it.
const onCPU = "CPU"

// String is the event as RDS writes it, as in "IO:DataFileRead", or "CPU".
func (e Event) String() string {
	if e.Type == "" {
		return onCPU
	}
	return e.Type + ":" + e.Name
}

// Parse reads what String wrote.
func Parse(text string) Event {
	if text == onCPU {
		return Event{}
	}
	kind, name, _ := strings.Cut(text, ":")
	return Event{Type: kind, Name: name}
}

// named compares names of several releases: PostgreSQL 17 spells WALSync as WalSync.
func (e Event) named(kind string, names ...string) bool {
	return e.Type == kind && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, e.Name) })
}

// Class returns the class of an event. What waits for somebody that writes WAL counts as WAL, too.
func (e Event) Class() Class {
	switch {
	case e.Type == "":
		return CPU
	case e.Type == "IO" && hasPrefixFold(e.Name, "wal"),
		e.named("LWLock", "WALWrite", "WALInsert", "WALBufMapping", "WALBufferInit"),
		e.named("Timeout", "CommitDelay"):
		return WAL
	}
	switch e.Type {
	case "IO":
		return IO
	case "Lock":
		return Lock
	case "LWLock":
		return LWLock
	case "IPC":
		return IPC
	case "Client":
		return Client
	case "Timeout":
		return Timeout
	default:
		return Other
	}
}

// Reads reports whether the event waits for a data file to be read, by this session or by another
// one that reads the same page. PostgreSQL 18 reads with helpers.
func (e Event) Reads() bool {
	return e.named("IO", "DataFileRead", "DataFilePrefetch", "SLRURead") ||
		e.Type == "IO" && hasPrefixFold(e.Name, "aio") || e.named("IPC", "BufferIO")
}

// Writes reports whether the event waits for a data file to be written, extended or flushed.
func (e Event) Writes() bool {
	return e.named("IO", "DataFileWrite", "DataFileExtend", "DataFileFlush", "DataFileSync",
		"DataFileImmediateSync", "DataFileTruncate", "SLRUWrite", "SLRUSync", "SLRUFlushSync") ||
		e.named("Timeout", "RegisterSyncRequest") || e.named("LWLock", "CheckpointerComm") ||
		e.named("IPC", "CheckpointStart", "CheckpointDone")
}

// Temporary reports whether the event waits for a temporary file: a sort or hash that memory could
// not hold.
func (e Event) Temporary() bool {
	return e.named("IO", "BufFileRead", "BufFileWrite", "BufFileTruncate")
}

// Replication reports whether the event waits for a standby to confirm.
func (e Event) Replication() bool { return e.named("IPC", "SyncRep") }

// Inserts reports whether the event waits for a place in the WAL buffers, before anything is flushed.
func (e Event) Inserts() bool {
	return e.named("LWLock", "WALInsert", "WALBufMapping", "WALBufferInit")
}

// Row reports whether the event waits for a row that another transaction changed.
func (e Event) Row() bool { return e.named("Lock", "transactionid", "tuple", "spectoken") }

// Counts reports whether a session in this state counts as active. What has nothing to do waits in
// an Activity.
func (e Event) Counts() bool { return e.Type != "Activity" }

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

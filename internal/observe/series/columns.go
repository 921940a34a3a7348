package series

import "strings"

// The columns. Columns explains them.
const (
	Active            = "aas"
	ActiveCPU         = "aas.cpu"
	ActiveIO          = "aas.io"
	ActiveWAL         = "aas.wal"
	ActiveLock        = "aas.lock"
	ActiveLWLock      = "aas.lwlock"
	ActiveIPC         = "aas.ipc"
	ActiveClient      = "aas.client"
	ActiveTimeout     = "aas.timeout"
	ActiveOther       = "aas.other"
	WaitPrefix        = "wait."
	Sessions          = "sessions"
	SessionsIdle      = "sessions.idle"
	SessionsInTrans   = "sessions.idle_in_transaction"
	SessionsForeign   = "sessions.foreign"
	CheckpointRunning = "checkpoint.running"
	VacuumWorkers     = "autovacuum.workers"

	Commits    = "db.commits"
	Rollbacks  = "db.rollbacks"
	BlocksRead = "db.blocks_read"
	BlocksHit  = "db.blocks_hit"
	HitRatio   = "db.hit_ratio"
	Deadlocks  = "db.deadlocks"

	WALBytes       = "wal.bytes"
	WALRecords     = "wal.records"
	WALImages      = "wal.images"
	WALBuffersFull = "wal.buffers_full"
	WALWrites      = "wal.writes"
	WALWriteTime   = "wal.write_ms"
	WALSyncs       = "wal.syncs"
	WALSyncTime    = "wal.sync_ms"
	WALSyncLatency = "wal.sync_latency_ms"
	CommitsPerSync = "wal.commits_per_sync"
	FPIShare       = "wal.image_share"
	WALPosition    = "lsn.bytes"

	StandbyPrefix = "standby."
	SlotPrefix    = "slot."
	LockWaiting   = "lock.waiting"
	LockOnPrefix  = "lock.on."

	ServerCPU         = "server.cpu"
	ServerCPULimit    = "server.cpu_limit"
	ServerThrottled   = "server.throttled"
	ServerMemory      = "server.memory_bytes"
	ServerMemoryLimit = "server.memory_limit_bytes"
	ServerReadOps     = "server.read_ops"
	ServerWriteOps    = "server.write_ops"
	ServerReadBytes   = "server.read_bytes"
	ServerWriteBytes  = "server.write_bytes"
	ServerReadLimit   = "server.read_ops_limit"
	ServerWriteLimit  = "server.write_ops_limit"
	ServerPSIIO       = "server.psi.io"

	GeneratorCPU = "generator.cpu"
	KnownCPU     = "known.cpu"

	MachineCPUs          = "machine.cpus"
	MachineCPU           = "machine.cpu"
	MachineTasks         = "machine.tasks"
	MachineSteal         = "machine.steal"
	MachineForeign       = "machine.foreign"
	MachineKernelThreads = "machine.kernel_threads"
	MachinePSIIO         = "machine.psi.io"

	DeviceReadOps      = "device.read_ops"
	DeviceReadBytes    = "device.read_bytes"
	DeviceReadTime     = "device.read_ms"
	DeviceReadLatency  = "device.read_latency_ms"
	DeviceWriteOps     = "device.write_ops"
	DeviceWriteBytes   = "device.write_bytes"
	DeviceWriteTime    = "device.write_ms"
	DeviceWriteLatency = "device.write_latency_ms"
	DeviceFlushOps     = "device.flush_ops"
	DeviceFlushTime    = "device.flush_ms"
	DeviceFlushLatency = "device.flush_latency_ms"
	DeviceBusy         = "device.busy"
	DeviceInFlight     = "device.in_flight"
	DeviceFreeShare    = "device.free_share"

	ObserverCPU        = "observer.cpu"
	ObserverBackendCPU = "observer.backend_cpu"
	ObserverRoundTrip  = "observer.round_trip_ms"
	ObserverSample     = "observer.sample_ms"
	ObserverPace       = "observer.pace_seconds"
	ObserverConnected  = "observer.connected"
	ObserverClockStep  = "observer.clock_step_ms"
)

// sparse has the prefixes of columns that a row lacks where there was nothing to count, by the
// column that shows that somebody counted.
var sparse = map[string]string{WaitPrefix: Active, LockOnPrefix: LockWaiting}

// Column explains one column, or all with a prefix.
type Column struct {
	Name string // a trailing dot stands for all columns that begin so
	Unit string
	Doc  string
}

// Explain returns what a column means, and whether it is one of ours.
func Explain(name string) (Column, bool) {
	best := Column{}
	for _, c := range Columns {
		if c.Name == name {
			return c, true
		}
		if strings.HasSuffix(c.Name, ".") && strings.HasPrefix(name, c.Name) && len(c.Name) > len(best.Name) {
			best = c
		}
	}
	return best, best.Name != ""
}

// Columns explains all columns. "cores" are CPU seconds a second. Names that end in _ms or _bytes
// and are rates are milliseconds or bytes a second. A share is between 0 and 1.
var Columns = []Column{
	{Active, "sessions", "average active sessions: client backends and parallel workers of the load whose state is active"},
	{ActiveCPU, "sessions", "of these: without a wait, so they run or wait for a CPU"},
	{ActiveIO, "sessions", "of these: wait for data files or temporary files"},
	{ActiveWAL, "sessions", "of these: write, flush or insert WAL, or wait for who does"},
	{ActiveLock, "sessions", "of these: wait for a lock of SQL, such as a row's"},
	{ActiveLWLock, "sessions", "of these: wait for a lock inside of the server, those of WAL apart"},
	{ActiveIPC, "sessions", "of these: wait for another process, such as a standby's confirmation"},
	{ActiveClient, "sessions", "of these: wait for their client to send or take"},
	{ActiveTimeout, "sessions", "of these: sleep"},
	{ActiveOther, "sessions", "of these: wait for what an extension names, or a buffer's pin"},
	{WaitPrefix, "sessions", "average active sessions in one wait, as in wait.IO:DataFileRead; absent: nobody"},
	{Sessions, "sessions", "client backends of the load"},
	{SessionsIdle, "sessions", "of these: idle, outside of a transaction"},
	{SessionsInTrans, "sessions", "of these: idle in a transaction"},
	{SessionsForeign, "sessions", "active sessions that are not the load's: of another database, or of another program"},
	{CheckpointRunning, "share", "samples in which the checkpointer worked"},
	{VacuumWorkers, "processes", "autovacuum workers"},

	{Commits, "1/s", "transactions committed in the database"},
	{Rollbacks, "1/s", "transactions rolled back in the database"},
	{BlocksRead, "blocks/s", "blocks that were not in shared buffers"},
	{BlocksHit, "blocks/s", "blocks that were in shared buffers"},
	{HitRatio, "share", "of blocks that were in shared buffers"},
	{Deadlocks, "1/s", "deadlocks in the database"},
	{"db.", "1/s", "other counters of pg_stat_database for the database; _ms are milliseconds a second, and those of reads and writes absent unless track_io_timing is on"},

	{WALBytes, "bytes/s", "WAL made, by pg_stat_wal"},
	{WALRecords, "1/s", "WAL records"},
	{WALImages, "1/s", "full page images in WAL"},
	{WALBuffersFull, "1/s", "writes because the WAL buffers were full"},
	{WALWrites, "1/s", "writes of WAL"},
	{WALWriteTime, "ms/s", "time in writes of WAL; absent unless track_wal_io_timing is on"},
	{WALSyncs, "1/s", "flushes of WAL"},
	{WALSyncTime, "ms/s", "time in flushes of WAL; absent unless track_wal_io_timing is on"},
	{WALSyncLatency, "ms", "time of one flush of WAL"},
	{CommitsPerSync, "transactions", "transactions committed in the database for each flush of WAL of the server: those that only read need none"},
	{FPIShare, "share", "full page images among the bytes of WAL, at most"},
	{WALPosition, "bytes/s", "WAL made, or replayed on a standby, by the position in it"},

	{"checkpoint.", "1/s", "counters of the checkpointer; _ms are milliseconds a second, buffers are blocks"},
	{"bgwriter.", "1/s", "counters of the background writer, in blocks"},
	{"io.", "1/s", "counters of pg_stat_io (16 and later) by kind of process, as in io.client.reads; _ms are milliseconds a second"},
	{"recovery.", "bytes, seconds", "a standby's received and replayed positions, and its lag"},
	{StandbyPrefix, "bytes, seconds", "of each standby, by its name: positions (_lsn), bytes that it lacks (_lag_bytes), lag as the server measures it (_lag_seconds), and whether commits wait for it (sync)"},
	{SlotPrefix, "bytes, share", "of each replication slot, by its name: WAL that it holds (retained_bytes), and whether it is in use (active)"},
	{LockWaiting, "sessions", "sessions that wait for a lock of SQL"},
	{LockOnPrefix, "sessions", "those that wait for one relation or its rows, as in lock.on.pgbench_branches, also through others that wait there; absent: nobody"},

	{ServerCPU, "cores", "CPU of the server's control group, or of its processes"},
	{ServerCPULimit, "cores", "what its control group may use; absent: all"},
	{ServerThrottled, "1/s", "periods in which its control group was held back"},
	{"server.throttled_seconds", "cores", "time for which it was held back"},
	{ServerMemory, "bytes", "memory of its control group without the page cache that is not in use, or of its processes"},
	{ServerMemoryLimit, "bytes", "what its control group may use; absent: all"},
	{ServerReadOps, "1/s", "reads of its control group on its devices"},
	{ServerWriteOps, "1/s", "writes of its control group on its devices; in version 1 without those that the kernel's flusher makes"},
	{ServerReadBytes, "bytes/s", "the same, in bytes"},
	{ServerWriteBytes, "bytes/s", "the same, in bytes"},
	{ServerReadLimit, "1/s", "reads that its control group may do on one of its devices; absent: any number"},
	{ServerWriteLimit, "1/s", "writes that its control group may do on one of its devices; absent: any number"},
	{"server.psi.", "share", "time in which some (or all: _full) of its control group waited for CPU, I/O or memory"},

	{GeneratorCPU, "cores", "CPU of the load generator's processes"},
	{KnownCPU, "cores", "CPU of other processes that belong to the test"},
	{MachineCPUs, "cores", "CPUs of the machine"},
	{MachineCPU, "cores", "CPU that the machine used, interrupts included"},
	{MachineTasks, "cores", "CPU that its tasks used, interrupts left out"},
	{MachineSteal, "cores", "CPU that the hypervisor gave to others"},
	{"machine.iowait", "cores", "idle time in which a task waited for a disk"},
	{MachineForeign, "cores", "CPU of tasks that are neither the server's, the generator's, the observer's nor the kernel's"},
	{MachineKernelThreads, "cores", "CPU of the kernel's threads"},
	{"machine.memory_available_bytes", "bytes", "memory that could be had without swapping"},
	{"machine.psi.", "share", "time in which some (or all: _full) of the machine's tasks waited for CPU, I/O or memory"},

	{DeviceReadOps, "1/s", "reads that the server's devices completed, whoever asked for them"},
	{DeviceReadBytes, "bytes/s", "the same, in bytes"},
	{DeviceReadTime, "ms/s", "time of these reads, added up"},
	{DeviceReadLatency, "ms", "time of one read"},
	{DeviceWriteOps, "1/s", "writes that the server's devices completed, whoever asked for them"},
	{DeviceWriteBytes, "bytes/s", "the same, in bytes"},
	{DeviceWriteTime, "ms/s", "time of these writes, added up"},
	{DeviceWriteLatency, "ms", "time of one write"},
	{DeviceFlushOps, "1/s", "flushes that the devices completed"},
	{DeviceFlushTime, "ms/s", "time of these flushes, added up"},
	{DeviceFlushLatency, "ms", "time of one flush"},
	{DeviceBusy, "share", "time in which the busiest of the devices had something to do"},
	{DeviceBusy + ".", "share", "the same of one device, by its name"},
	{DeviceInFlight, "requests", "requests that the devices work on"},
	{DeviceFreeShare, "share", "of the data directory's file system that is free, without what is kept for root"},

	{ObserverCPU, "cores", "CPU of the observer's own process, where that is not the generator's"},
	{ObserverBackendCPU, "cores", "CPU of the observer's backend in the server"},
	{ObserverRoundTrip, "ms", "an empty statement, there and back: the quickest of the row"},
	{ObserverSample, "ms", "all statements of the slowest sample of the row"},
	{ObserverPace, "seconds", "time between samples of sessions; it grows when samples are slow"},
	{ObserverConnected, "share", "1 if the server answered, 0 if not"},
	{ObserverClockStep, "ms", "by how much the wall clock was stepped in the row"},
}

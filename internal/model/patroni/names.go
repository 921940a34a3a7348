// Package patroni has the words of Patroni 4.1, which alone decides who is primary: its timings and
// names, what members of a database share, and what it keeps in etcd. It does no I/O, so that the
// planner can use its types.
package patroni

// Timings of the HA loop in seconds. Patroni raises smaller values silently:
// ttl >= 20, loop_wait >= 1, retry_timeout >= 3 (its config.py).
const (
	TTL          = 20
	LoopWait     = 1
	RetryTimeout = 3
)

// SelfDemotion is the time in seconds after which a primary that lost etcd has certainly stepped
// down. It counts from the last refresh of its lease. It follows from Patroni's own rule that
// loop_wait + 2*retry_timeout must fit into the ttl.
const SelfDemotion = LoopWait + 2*RetryTimeout + 1

// Names of files and directories below the directory of a member.
const (
	DataDir    = "data"
	CertDir    = "tls"
	OwnDir     = "tls/own" // what the member shows of itself as a client
	LogDir     = "log"
	ConfigFile = "patroni.json"

	// WholeFile is the name of a module that Python loads before any program. PythonDir is its
	// directory.
	WholeFile = "sitecustomize.py"
	PythonDir = "python"
)

// ConfigTag is the tag of a member that holds the digest of its configuration.
const ConfigTag = "config"

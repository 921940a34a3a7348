// Package proc keeps the processes of a database member as one contained group: a Patroni, and the
// PostgreSQL that it starts. It starts them, finds them again after a death of its own, limits,
// watches and kills them, and proves them dead. Fencing rests on that proof. So a Kill that cannot
// prove it returns an error, and never guesses.
//
// Invariants:
//   - What is started outlives us. No pipe leads to us, no signal follows our death, and the log
//     file belongs to the child alone.
//   - A process is its id together with its start time. A recycled id is neither signalled nor
//     believed alive.
//   - A proof names its evidence. The evidence is the kernel's, or a scan of the process table, and
//     never that a signal was sent.
//   - Children of ours are waited for, so they leave no zombie.
//   - Describe and warnings say in words for the user what this host cannot do. Nothing fails
//     silently.
//
// How well a group is contained depends on the host. Open finds it out:
//
//	cgroup2  a control group of version 2. Nothing leaves it by forking, by new
//	         sessions or by changing its environment, and the kernel counts what
//	         is in it. The proof is exact.
//	freezer  a group of version 1's freezer. It is the same, and as exact: the group
//	         is removed, which the kernel does only when no process is left in it.
//	tree     no control groups. Members are found in the process table by their
//	         session, working directory, environment and descent. This finds
//	         every PostgreSQL and Patroni. But a program is not found that leaves
//	         its session and its directory, drops its environment and outlives
//	         its parent, all between two scans or before the first. The proof
//	         is as good as that.
package proc

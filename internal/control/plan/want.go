package plan

import (
	"cmp"
	"slices"
	"strings"

	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
)

// Links are a database's relations to others.
type Links struct {
	// Upstream is the endpoint of the database that this one follows. It is nil if it follows none,
	// or one that does not exist.
	Upstream *patroni.Upstream
	// Followers lists the resource ids of the databases that follow this one.
	Followers []string
	// Below lists Followers, the databases that follow them, and so on.
	Below []string
	// Groups are all parameter groups.
	Groups Groups
	// Repositories has the names of those that the database's WAL goes to.
	Repositories []string
}

// SlotName returns the name of the replication slot for a database that follows another one.
func SlotName(resourceID string) string {
	return "follow_" + strings.ReplaceAll(strings.ToLower(resourceID), "-", "_")
}

// ForInstance returns what is wanted for an instance that is no member of a cluster.
func ForInstance(i spec.Instance, links Links) Database {
	d := ShapeOf(i, links)
	memory := max(classOf(i.Class).Memory, i.SharedMemory)
	d.Parameters = spec.ClusterParameters(memory, int64(i.Storage)<<30)
	database, own := param.Split(links.Groups.inForce(param.Instance, i.Common))
	d.configure(database, param.Machine{Memory: memory, Storage: int64(i.Storage) << 30, CPUs: classOf(i.Class).CPUs, Port: i.Port, Replica: i.Follows()})
	for n := range d.Seats {
		d.Seats[n].Values = own
	}
	d.Warm = i.MultiAZ && spec.Setting(i.Tags, spec.WarmStandby) == "true"
	return d
}

// ShapeOf returns what ForInstance does, but without PostgreSQL's settings. No status depends on
// these, and a page of instances would compute them a hundred times.
func ShapeOf(i spec.Instance, links Links) Database {
	seats := []Seat{instanceSeat(i)}
	if i.MultiAZ {
		seats = append(seats, instanceSeat(i))
	}
	d := common(i.Common, links)
	d.Seats, d.Zone, d.SpreadZones = seats, i.Zone, true
	if !i.Follows() {
		d.Archive = archiveOf(i.Common, int64(i.Storage)<<30, links)
	}
	return d
}

// ForCluster returns what is wanted for a cluster with its instances. The cluster and the instance
// each count changes that need a restart, and a seat's Restart is the sum of both.
func ForCluster(c spec.Cluster, instances []spec.Instance, links Links) Database {
	d := common(c.Common, links)
	d.SpreadZones, d.Cluster = c.MultiAZ(), member.AuroraCluster
	if c.MultiAZ() {
		d.Cluster = member.MultiAZCluster
	}
	memory, storage, cpus := c.SharedMemory, int64(0), 0
	for _, i := range byAge(instances) {
		if i.Deleting {
			continue
		}
		seat := instanceSeat(i)
		seat.Key, seat.Zone, seat.Tier = i.ResourceID, i.Zone, i.Tier
		seat.Instance, seat.Endpoint, seat.Port = i.Name, i.ServedAt(), i.Port
		seat.NoFailover = spec.Setting(i.Tags, spec.Promotable) == "false"
		seat.Reboot, seat.Restart = i.Reboot, i.Restart+c.Restart
		seat.Values = links.Groups.ofMember(c, i)
		d.Seats = append(d.Seats, seat)
		memory, storage = max(memory, classOf(i.Class).Memory), max(storage, int64(i.Storage)<<30)
		cpus = max(cpus, classOf(i.Class).CPUs)
	}
	if c.Final != "" {
		d.Last = &Seat{Limits: member.Limits{MemoryBytes: memory}}
	}
	allowOne(d.Seats)
	// The oldest instance becomes the writer, but only an instance that may be promoted.
	slices.SortStableFunc(d.Seats, func(a, b Seat) int { return boolRank(a.NoFailover) - boolRank(b.NoFailover) })
	d.Archive = archiveOf(c.Common, storage, links)
	d.Parameters = spec.ClusterParameters(memory, storage)
	c.Taken = newestTaken(c, instances)
	database, _ := param.Split(links.Groups.inForce(param.Cluster, c.Common))
	d.configure(database, param.Machine{Memory: memory, Storage: storage, CPUs: cpus, Port: c.Port})
	return d
}

func byAge(instances []spec.Instance) []spec.Instance {
	return slices.SortedFunc(slices.Values(instances), func(a, b spec.Instance) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name), strings.Compare(a.ResourceID, b.ResourceID))
	})
}

// allowOne lets all seats be promoted if none may be: a cluster without a writer serves nobody.
func allowOne(seats []Seat) {
	if slices.ContainsFunc(seats, func(s Seat) bool { return !s.NoFailover }) {
		return
	}
	for i := range seats {
		seats[i].NoFailover = false
	}
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

func common(c spec.Common, links Links) Database {
	d := Database{
		ID: c.ResourceID, Major: c.Major, Port: c.Port, State: member.Running,
		WaitForStandby: spec.Setting(c.Tags, spec.WaitForStandby) == "true",
		RequireTLS:     true, IAMAuth: c.IAMAuth, Encrypted: c.StorageKey != "",
		Owner:    member.Owner{Name: c.MasterUser, Verifier: c.Verifier, Serial: c.PasswordSerial, Database: c.DBName},
		Upstream: links.Upstream, Restore: restoreOf(c.Origin),
		Change: c.Change, Reboot: c.Reboot, Failover: c.Failover, FailoverSeat: c.FailoverTarget,
		ChangeStatus: c.ChangeStatus, BackedUp: c.BackupRetention > 0 && !c.Hidden(), Hidden: c.Hidden(),
	}
	for _, f := range links.Followers {
		d.Slots = append(d.Slots, SlotName(f))
	}
	slices.Sort(d.Slots)
	d.Admits = append([]string{c.ResourceID}, slices.Sorted(slices.Values(links.Below))...)
	switch {
	case c.Deleting:
		d.State = member.Absent
	case c.Stopped, c.ClosedBy != "":
		d.State = member.Stopped
	}
	return d
}

// archiveOf returns where the WAL of a database with so much storage goes. One that follows another
// one has none: nobody would archive what its members wait for. Its WAL is its source's.
func archiveOf(c spec.Common, storage int64, links Links) *member.Archive {
	if len(links.Repositories) == 0 {
		return nil
	}
	return &member.Archive{Repositories: links.Repositories, Cap: spec.WALCap(c.Tags, storage)}
}

func instanceSeat(i spec.Instance) Seat {
	class := classOf(i.Class)
	return Seat{
		Restart: i.Restart, Authority: i.CACertificate,
		Limits: member.Limits{
			CPUs: float64(class.CPUs), MemoryBytes: class.Memory,
			IOPS: int64(i.IOPS), StorageBytes: int64(i.Storage) << 30,
		},
	}
}

// classOf returns the class of a validated record.
func classOf(name string) spec.Class {
	c, _ := spec.LookupClass(name)
	return c
}

package agent

import (
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/member"
)

func TestDiskIsFullUntilThereIsRoomAgain(t *testing.T) {
	const mib = int64(1 << 20)
	var d disk
	for i, c := range []struct {
		free int64
		want bool
	}{
		{400 * mib, false}, {64 * mib, false}, {63 * mib, true}, {100 * mib, true}, {127 * mib, true}, {128 * mib, false}, {70 * mib, false},
	} {
		d.judge(1000*mib, c.free)
		if d.full != c.want || (d.detail != "") != c.want {
			t.Errorf("look %d, %d MiB free: full %v (%q), want %v", i, c.free/mib, d.full, d.detail, c.want)
		}
	}
}

func TestDiskIsLookedAtNowAndThen(t *testing.T) {
	d := disk{full: true}
	now := time.Now()
	d.look("/nowhere/at/all", now)
	if !d.full {
		t.Error("what nobody can see is not judged anew")
	}
	d.look(t.TempDir(), now.Add(diskEvery/2))
	if !d.full {
		t.Error("looked again too soon")
	}
	// A disk with so little left would not have taken the build of this test.
	d.look(t.TempDir(), now.Add(2*diskEvery))
	if d.looked.Equal(now) {
		t.Error("not looked again")
	}
}

func TestProblemOfAMember(t *testing.T) {
	const limit = 1000
	for _, c := range []struct {
		name   string
		member *Member
		report member.Report
		sight  sight
		want   member.Problem
	}{
		{name: "all well", report: member.Report{Ready: true}, want: member.None},
		{name: "the disk is full", member: &Member{disk: disk{full: true}}, report: member.Report{Ready: true}, want: member.DiskFull},
		{name: "it does not start on a full disk", member: &Member{disk: disk{full: true}}, report: member.Report{Problem: member.StartFails}, want: member.DiskFull},
		{name: "another problem comes first", member: &Member{disk: disk{full: true}}, report: member.Report{Problem: member.PortTaken}, want: member.PortTaken},
		{name: "PostgreSQL refuses to write", report: member.Report{Ready: true}, sight: sight{noRoom: true}, want: member.DiskFull},
		{name: "a refused assignment", member: &Member{refused: "torn"}, report: member.Report{Ready: true}, want: member.BadAssignment},
		{name: "a refused assignment of one that does not start", member: &Member{refused: "torn"}, report: member.Report{Problem: member.StartFails}, want: member.StartFails},
		{name: "a slot is lost", report: member.Report{Ready: true}, sight: sight{facts: postgres.Facts{LostSlots: []string{"s"}}}, want: member.SlotLost},
		{name: "the storage is full", report: member.Report{Ready: true, StorageBytes: limit}, want: member.StorageFull},
		{name: "the storage is low", report: member.Report{Ready: true, StorageBytes: limit - limit/10}, want: member.StorageLow},
		{name: "the storage suffices", report: member.Report{Ready: true, StorageBytes: limit - limit/10 - 1}, want: member.None},
		{name: "a replica without a stream", report: member.Report{Ready: true, InRecovery: true}, want: member.NotReplicating},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.member == nil {
				c.member = &Member{}
			}
			c.member.Want = member.Assignment{Want: member.Running, Limits: member.Limits{StorageBytes: limit}}
			(&runner{Member: c.member}).addProblem(&c.report, c.sight)
			if c.report.Problem != c.want {
				t.Errorf("%q, want %q", c.report.Problem, c.want)
			}
		})
	}
	gone := runner{Member: &Member{disk: disk{full: true}, Want: member.Assignment{Want: member.Absent}}}
	report := member.Report{}
	if gone.addProblem(&report, sight{}); report.Problem != member.None {
		t.Errorf("a member that is being deleted: %q", report.Problem)
	}
}

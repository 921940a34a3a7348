package agent

import (
	"testing"
	"time"

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

func TestTroubleOfAMember(t *testing.T) {
	full := &Member{disk: disk{full: true}}
	for _, c := range []struct {
		name    string
		member  *Member
		report  member.Report
		noRoom  bool
		lacking string
		want    member.Problem
	}{
		{name: "all well", report: member.Report{Ready: true}, want: member.None},
		{name: "the disk is full", member: full, report: member.Report{Ready: true}, want: member.DiskFull},
		{name: "it does not start on a full disk", member: full, report: member.Report{Problem: member.StartFails}, want: member.DiskFull},
		{name: "another problem comes first", member: full, report: member.Report{Problem: member.PortTaken}, want: member.PortTaken},
		{name: "it was refused to write", report: member.Report{Ready: true}, noRoom: true, want: member.DiskFull},
		{name: "it has all it may", member: &Member{volume: volume{detail: "all"}}, report: member.Report{Ready: true}, want: member.StorageFull},
		{name: "there is no room for what comes first", lacking: "1 MiB", want: member.NoRoom},
		{name: "a refused assignment", member: &Member{refused: "torn"}, report: member.Report{Ready: true}, want: member.BadAssignment},
		{name: "a refused assignment of one that does not start", member: &Member{refused: "torn"}, report: member.Report{Problem: member.StartFails}, want: member.StartFails},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.member == nil {
				c.member = &Member{}
			}
			c.member.Want = member.Assignment{Want: member.Running}
			if found := c.member.Trouble(&c.report, c.report.Ready, c.noRoom, c.lacking); c.report.Problem != c.want || found != (c.want != member.None) {
				t.Errorf("%q, %v, want %q", c.report.Problem, found, c.want)
			}
		})
	}
	gone := &Member{disk: disk{full: true}, Want: member.Assignment{Want: member.Absent}}
	report := member.Report{}
	if gone.Trouble(&report, false, false, ""); report.Problem != member.None {
		t.Errorf("a member that is being deleted: %q", report.Problem)
	}
}

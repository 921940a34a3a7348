package jobs

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"howdah/internal/host/proc"
	model "howdah/internal/model/backup"
)

func TestBoundsOfADrill(t *testing.T) {
	t.Parallel()
	all := float64(runtime.NumCPU())
	for _, tt := range []struct {
		name string
		args model.DrillJob
		host int64
		want proc.Limits
	}{
		{"as its class", model.DrillJob{CPUs: 1, Memory: 1 << 30, IOPS: 3000}, 16 << 30, proc.Limits{CPUs: 1, MemoryBytes: 1 << 30, IOPS: 3000}},
		{"a class larger than the host", model.DrillJob{CPUs: 1e6, Memory: 64 << 30}, 16 << 30, proc.Limits{CPUs: all, MemoryBytes: 4 << 30}},
		{"nobody knows the class", model.DrillJob{}, 16 << 30, proc.Limits{CPUs: min(2, all), MemoryBytes: 2 << 30}},
		{"a small host", model.DrillJob{CPUs: 1, Memory: 8 << 30, IOPS: -1}, 1 << 30, proc.Limits{CPUs: 1, MemoryBytes: leastMemory}},
		{"a host of unknown memory", model.DrillJob{CPUs: 1}, 0, proc.Limits{CPUs: 1, MemoryBytes: leastMemory}},
	} {
		tt.want.Yields = true
		if got := boundsOf(tt.args, tt.host); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestADrillWithoutRoomIsRefused(t *testing.T) {
	t.Parallel()
	h := &Host{Room: func() (size, free int64, err error) { return 100 << 30, 3 << 30, nil }}
	_, _, err := h.withRoom(t.Context(), 4<<30)
	if !errors.Is(err, errRoom) || !strings.Contains(err.Error(), "it needs 4096 MiB on its disk, and 3072 MiB are free") {
		t.Errorf("error %v", err)
	}
	_, end, err := h.withRoom(t.Context(), 2<<30)
	if err != nil {
		t.Fatal(err)
	}
	end()
}

// A drill ends before it takes the room of databases.
func TestADrillEndsWhereADiskFills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := int64(50 << 30)
		h := &Host{Room: func() (int64, int64, error) { return 100 << 30, free, nil }}
		ctx, end, err := h.withRoom(t.Context(), 2<<30)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		time.Sleep(time.Minute)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("it ended although there is room")
		}
		free = 1 << 30
		time.Sleep(2 * roomEvery)
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, errRoom) || !strings.Contains(err.Error(), "only 1024 of 102400 MiB") {
			t.Errorf("error %v", err)
		}
	})
}

func TestPatienceFollowsTheSize(t *testing.T) {
	t.Parallel()
	if least, large := patience(0), patience(1<<40); least != 10*time.Minute || large < 100*time.Hour {
		t.Errorf("%s and %s", least, large)
	}
}

package lab

import (
	"testing"

	"howdah/internal/lab/run"
)

// A dry run says what e5 would take, and no server is asked.
func TestPlanOfE5(t *testing.T) {
	t.Parallel()
	_, e, err := find("e5")
	if err != nil {
		t.Fatal(err)
	}
	long, err := planOf(run.Options{Experiment: e, Dir: "lab/e5"})
	if err != nil || long.Points != 21 || long.Seconds != 21*420 || long.Clients != 65 || long.Bytes < 5e9 || long.Bytes > 6e9 {
		t.Errorf("%+v, %v", long, err)
	}
	quick, err := planOf(run.Options{Experiment: e.Quickly()})
	if err != nil || quick.Points != 9 || len(quick.Settings) != 3 || quick.Seconds > 120 || quick.Clients != 17 || quick.Bytes > 5e8 {
		t.Errorf("%+v, %v", quick, err)
	}
}

package backup

import (
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	clock := func(text string) time.Time {
		t.Helper()
		moment, err := time.Parse("02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return moment.AddDate(2026, 10, 0)
	}
	for name, c := range map[string]struct {
		window, last, now string // last "": never
		want              string // "": not due
	}{
		"the first one":                      {"03:00-03:30", "", "24 12:34", "24 12:34"},
		"before the window":                  {"03:00-03:30", "24 12:34", "25 02:59", ""},
		"in the window":                      {"03:00-03:30", "24 12:34", "25 03:00", "25 03:00"},
		"at its end":                         {"03:00-03:30", "24 12:34", "25 03:29", "25 03:00"},
		"missed, and the last is young":      {"03:00-03:30", "24 12:34", "25 03:30", ""},
		"begun":                              {"03:00-03:30", "25 03:00", "25 03:10", ""},
		"missed":                             {"03:00-03:30", "24 03:00", "25 03:31", "25 03:00"},
		"missed for days":                    {"03:00-03:30", "20 03:00", "25 02:00", "24 03:00"},
		"made up for":                        {"03:00-03:30", "25 03:00", "25 20:00", ""},
		"over midnight":                      {"23:45-00:15", "23 23:45", "25 00:10", "24 23:45"},
		"before one that goes over midnight": {"23:45-00:15", "23 23:45", "24 23:44", ""},
		"moved to a time that has passed":    {"02:00-02:30", "24 03:00", "24 16:00", ""},
		"moved to later":                     {"17:00-17:30", "24 03:00", "24 17:00", "24 17:00"},
		"the clock went back":                {"03:00-03:30", "25 03:00", "24 03:10", ""},
		"the clock went forward":             {"03:00-03:30", "25 03:00", "29 12:00", "29 03:00"},
		"the clock was wrong":                {"03:00-03:30", "30 03:00", "24 03:10", "24 03:00"},
		"it was wrong, before the window":    {"03:00-03:30", "30 03:00", "24 02:10", ""},
		"no window":                          {"", "24 03:00", "29 12:00", ""},
	} {
		last := time.Time{}
		if c.last != "" {
			last = clock(c.last)
		}
		got, due := Due(c.window, last, clock(c.now))
		if due != (c.want != "") || due && !got.Equal(clock(c.want)) {
			t.Errorf("%s: %s, %t", name, got, due)
		}
	}
}

func TestLate(t *testing.T) {
	ago := func(hours int) time.Time { return noon.Add(-time.Duration(hours) * time.Hour) }
	for name, c := range map[string]struct {
		a    Automated
		want bool
	}{
		"none yet":           {Automated{Retention: 1}, false},
		"made":               {Automated{Retention: 1, Window: ago(25), Made: ago(25)}, false},
		"none for two days":  {Automated{Retention: 1, Window: ago(48), Made: ago(48)}, true},
		"being made":         {Automated{Retention: 1, Window: ago(1), Made: ago(25)}, false},
		"not made":           {Automated{Retention: 1, Window: ago(4), Made: ago(28)}, true},
		"the first fails":    {Automated{Retention: 1, Window: ago(4)}, true},
		"of a deleted one":   {Automated{Retention: 1, Window: ago(48), Made: ago(48), Retained: true}, false},
		"none are asked for": {Automated{Window: ago(48), Made: ago(48)}, false},
	} {
		if got := c.a.Late(noon); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

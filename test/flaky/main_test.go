package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	begun   = `{"Action":"run","Package":"howdah/x","Test":"TestA"}` + "\n"
	failed  = `{"Action":"fail","Package":"howdah/x","Test":"TestA","Elapsed":1}` + "\n"
	passed  = `{"Action":"pass","Package":"howdah/x","Test":"TestA","Elapsed":1}` + "\n"
	tooSlow = `{"Action":"output","Package":"howdah/x","Test":"TestA","Output":"x_test.go:7: not within 1m0s\n"}` + "\n"
	loss    = `{"Action":"output","Package":"howdah/x","Test":"TestA","Output":"x_test.go:9: 3 of 81 acknowledged rows are lost\n"}` + "\n"
	whole   = `{"Action":"fail","Package":"howdah/x"}` + "\n"
)

func TestRead(t *testing.T) {
	a := []string{"howdah/x TestA"}
	for name, c := range map[string]struct {
		events string
		want   report
	}{
		"nothing ran":               {"", report{}},
		"all passed":                {begun + tooSlow + passed, report{}},
		"a second attempt":          {begun + tooSlow + failed + whole + begun + passed, report{Flaky: a}},
		"a loss that came once":     {begun + loss + failed + whole + begun + passed, report{Flaky: a, Lost: a}},
		"a loss after it":           {begun + failed + begun + loss + failed, report{Flaky: a, Lost: a}},
		"the words of what passed":  {begun + tooSlow + failed + begun + loss + passed, report{Flaky: a}},
		"an end without its begin":  {failed, report{Flaky: a}},
		"words of the package only": {strings.ReplaceAll(loss, `"Test":"TestA",`, "") + whole, report{}},
	} {
		got, err := read(strings.NewReader(c.events))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := read(strings.NewReader("ok  \thowdah/x\n")); err == nil {
		t.Error("what is no event is taken")
	}
}

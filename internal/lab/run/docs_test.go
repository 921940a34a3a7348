package run

import (
	"os"
	"strings"
	"testing"

	"howdah/internal/observe/series"
	"howdah/internal/observe/wait"
)

// The guide explains all that a result has.
func TestTheGuideExplainsFiguresAndColumns(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/guide/lab-results.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(text)
	for _, f := range figures {
		name := f.name
		for _, class := range wait.Classes {
			if name == "aas_"+string(class) && class != wait.CPU {
				name = "_" + string(class)
			}
		}
		if !strings.Contains(guide, "`"+name+"`") {
			t.Errorf("it has no figure %s", name)
		}
	}
	for _, column := range series.Columns {
		row := series.Row{Values: map[string]float64{column.Name: 1}}
		if len(kept(row)) > 0 && !strings.Contains(guide, "| "+column.Unit+" | "+column.Doc+" |") {
			t.Errorf("it does not explain %s", column.Name)
		}
	}
}

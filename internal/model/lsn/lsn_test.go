package lsn

import (
	"encoding/json"
	"testing"
)

func TestTextForm(t *testing.T) {
	for text, want := range map[string]LSN{"0/0": 0, "16/B374D848": 0x16B374D848, "FFFFFFFF/FFFFFFFF": ^LSN(0)} {
		got, err := Parse(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %d as %s, %v", text, got, got, err)
		}
	}
	for _, text := range []string{"", "0", "0/", "/0", "x/0", "0/G", "100000000/0", "-1/0"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

func TestJSON(t *testing.T) {
	in := struct{ At LSN }{0x16B374D848}
	text, err := json.Marshal(in)
	if err != nil || string(text) != `{"At":"16/B374D848"}` {
		t.Fatalf("%s, %v", text, err)
	}
	out := in
	out.At = 0
	if err := json.Unmarshal(text, &out); err != nil || out != in {
		t.Errorf("%v, %v", out, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("16/B374D848")
	f.Fuzz(func(t *testing.T, text string) {
		position, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(position.String())
		if err != nil || again != position {
			t.Errorf("%q: %s then %s, %v", text, position, again, err)
		}
	})
}

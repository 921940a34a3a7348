package target

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"howdah/internal/admin/client"
	"howdah/internal/aws/wire/sigv4"
)

// groupPages are what the API lists, two pages of it; the tag of each group is in its ARN.
var groupPages = map[string][]string{
	"":  {"lab-e1-aa-0123ab=lab-e1-aa", "lab-e1-aa-0123ac=lab-e1-bb", "lab-e1-aa-mine=lab-e1-aa", "lab-e1-aa-0123abc=lab-e1-aa"},
	"2": {"lab-e1-aa-ffffff=lab-e1-aa", "lab-e1-aa-eeeeee=", "default.postgres17="},
}

// Groups are removed by their exact name and their tag, on whichever page of the list they are.
func TestGroupsThatAreRemoved(t *testing.T) {
	t.Parallel()
	var lock sync.Mutex
	var removed []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		action := r.FormValue("Action")
		kind := "DBParameterGroup"
		if strings.Contains(action, "Cluster") {
			kind = "DBClusterParameterGroup"
		}
		inner := ""
		switch {
		case strings.HasPrefix(action, "Describe"):
			for _, g := range groupPages[r.FormValue("Marker")] {
				name, _, _ := strings.Cut(g, "=")
				inner += fmt.Sprintf("<%[1]s><%[1]sName>%[2]s</%[1]sName><%[1]sArn>%[3]s</%[1]sArn></%[1]s>", kind, name, g)
			}
			inner = "<" + kind + "s>" + inner + "</" + kind + "s>"
			if r.FormValue("Marker") == "" {
				inner += "<Marker>2</Marker>"
			}
		case action == "ListTagsForResource":
			_, tag, _ := strings.Cut(r.FormValue("ResourceName"), "=")
			inner = "<TagList><Tag><Key>" + Tag + "</Key><Value>" + tag + "</Value></Tag></TagList>"
		default:
			removed = append(removed, kind+" "+r.FormValue(kind+"Name"))
		}
		fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult>%[2]s</%[1]sResult></%[1]sResponse>", action, inner)
	}))
	t.Cleanup(api.Close)
	c, err := client.New(client.Config{Endpoint: api.URL, Region: "local", Credentials: sigv4.Credentials{AccessKeyID: "AKIA", SecretAccessKey: "s"}})
	if err != nil {
		t.Fatal(err)
	}
	h := &Howdah{API: c, record: record{Identifier: "lab-e1-aa"}}
	if err := h.removeGroups(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"DBParameterGroup lab-e1-aa-0123ab", "DBParameterGroup lab-e1-aa-ffffff", "DBClusterParameterGroup lab-e1-aa-0123ab", "DBClusterParameterGroup lab-e1-aa-ffffff",
	}
	if !slices.Equal(removed, want) {
		t.Errorf("%q", removed)
	}
}

func TestNamesOfARun(t *testing.T) {
	t.Parallel()
	h := &Howdah{record: record{Identifier: "lab-e1-aa"}}
	for name, want := range map[string]bool{
		"lab-e1-aa": true, h.replica(1): true, h.member(12): true, "lab-e1-aab": false, "lab-e1-aa-old": false, "lab-e1-aa-s": false, "other": false,
	} {
		if h.names(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

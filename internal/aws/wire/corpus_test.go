package wire_test

import (
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
)

// The corpus is what the Go SDK's authors keep as the truth about their
// requests: one request with every parameter for each action.
const (
	corpusModule     = "github.com/aws/aws-sdk-go-v2/service/rds"
	corpusParameters = 2016 // not counting Action and Version
)

// unmodelled is what the SDK sends beyond the model: the region that it signs
// PreSignedUrl for. Servers ignore it.
var unmodelled = map[string][]string{
	"CopyDBClusterSnapshot":       {"DestinationRegion"},
	"CopyDBSnapshot":              {"DestinationRegion"},
	"CreateDBCluster":             {"DestinationRegion"},
	"CreateDBInstanceReadReplica": {"DestinationRegion"},
}

func TestCorpus(t *testing.T) {
	requests := readCorpus(t)
	if len(requests) != len(rds.Service.Actions) {
		t.Errorf("%d requests for %d actions", len(requests), len(rds.Service.Actions))
	}
	parameters := 0
	for _, file := range slices.Sorted(maps.Keys(requests)) {
		t.Run(file, func(t *testing.T) { parameters += checkRequest(t, file, requests[file]) })
	}
	if parameters != corpusParameters {
		t.Errorf("the corpus has %d parameters, not %d", parameters, corpusParameters)
	}
}

// checkRequest decodes one request and encodes it again: every parameter must
// have found its member. It returns the number of parameters.
func checkRequest(t *testing.T, file, text string) int {
	_, form, ok := strings.Cut(text, "\n\nContent-Type: application/x-www-form-urlencoded\n\n")
	if !ok {
		t.Fatalf("unexpected request:\n%s", text)
	}
	r, err := http.NewRequest(http.MethodPost, "/", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	action, values, _, err := wire.ReadRequest(r, wire.MaxBody)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := rds.Service.Action(action)
	if !ok || file != action+".request.snap" {
		t.Fatalf("%s asks for the action %s", file, action)
	}
	in := a.Input()
	if err := wire.DecodeForm(values, in); err != nil {
		t.Fatal(err)
	}
	got := wire.EncodeForm(action, rds.Service.Version, in)
	for _, name := range unmodelled[action] {
		if !values.Has(name) {
			t.Errorf("the request has no %s any more", name)
		}
		got[name] = values[name]
	}
	if diff := cmp.Diff(values, got); diff != "" {
		t.Errorf("parameters lost or changed (-corpus +ours):\n%s", diff)
	}
	return len(values) - len([]string{"Action", "Version"})
}

// readCorpus returns the requests by file name.
func readCorpus(t *testing.T) map[string]string {
	command := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", corpusModule)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("find module %s: %v", corpusModule, err)
	}
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "request_snapshot", "*.snap"))
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		requests[filepath.Base(path)] = string(text)
	}
	return requests
}

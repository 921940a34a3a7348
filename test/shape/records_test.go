package shape

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/control/notify"
	"howdah/internal/control/plan"
	"howdah/internal/control/reconcile"
	"howdah/internal/edge/seen"
	"howdah/internal/failover/fence"
	"howdah/internal/failover/postmortem"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/access"
	"howdah/internal/identity/authority"
	"howdah/internal/identity/kms"
	"howdah/internal/identity/secret"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/network"
	"howdah/internal/model/operation"
	"howdah/internal/model/param"
	"howdah/internal/model/regain"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/model/zone"
	"howdah/internal/state/format"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// records has the records that programs of several releases read.
var records = []any{
	spec.Instance{}, spec.Cluster{}, spec.Endpoint{}, spec.ParameterGroup{}, spec.SubnetGroup{}, spec.OptionGroup{}, spec.BucketRole{}, network.Group{},
	plan.Layout{}, member.Assignment{}, member.Task{}, member.Result{}, member.Report{}, member.Host{}, member.Lead{}, member.Liveness{}, member.Job{}, member.JobReport{},
	route.Route{}, route.Way{}, seen.Status{}, seen.Between{}, seen.Switch{}, reconcile.Notice{}, event.Event{}, postmortem.Record{},
	fence.Case{}, fence.Witness{}, fence.CutReport{}, fence.Death{}, fence.Plea{}, fence.Passed{}, fence.Sworn{}, fence.Incident{},
	regain.Home{}, regain.Hold{}, regain.Holding{}, regain.Copy{}, hostapi.ControlMember{}, zone.Setting{}, zone.Said{}, format.Record{}, format.Said{},
	operation.Record{}, operation.Wish{}, param.Catalogue{}, notify.Cursor{}, notify.Delivery{},
	access.Key{}, authority.Record{}, authority.Default{}, kms.Key{}, kms.Alias{}, kms.Storage{}, secret.Secret{},
	topic.Topic{}, topic.Subscription{}, topic.Message{}, topic.EventSubscription{}, topic.GivenUp{},
	backup.Repository{}, backup.Backup{}, backup.Snapshot{}, backup.Automated{}, backup.Part{}, backup.DrillRecord{}, member.Job{},
}

// read matches code that decodes a record of the state, with the record's type.
var read = regexp.MustCompile(`\bstate\.(?:Load|LoadAll|View|ViewAll|Get|List)\[\*?((?:[a-z]+\.)?[A-Z][A-Za-z]*)\]`)

// If some package decodes a record as a type, that type is in the list.
func TestAllRecordsAreListed(t *testing.T) {
	listed := map[string]bool{"T": true}
	for _, r := range records {
		listed[reflect.TypeOf(r).String()] = true
	}
	err := filepath.WalkDir("../../internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range read.FindAllStringSubmatch(string(text), -1) {
			name := m[1]
			if !strings.Contains(name, ".") && name != "T" {
				name = filepath.Base(filepath.Dir(path)) + "." + name
			}
			if !listed[name] {
				t.Errorf("%s reads a record of type %s: add it to records, and go test ./test/shape -update", path, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The test has the fields of all records, as they are written. Whoever changes them has to say what
// the release before makes of that: docs/design/formats.md.
func TestRecordsAreAsTheyWere(t *testing.T) {
	lines := map[string]bool{}
	for _, r := range records {
		fieldsOf(reflect.TypeOf(r), lines)
	}
	all := make([]string, 0, len(lines))
	for line := range lines {
		all = append(all, line)
	}
	slices.Sort(all)
	text := fmt.Sprintf("format %d\n%s\n", format.Newest, strings.Join(all, "\n"))
	path := filepath.Join("testdata", "records.txt")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Split(string(kept), "\n")
	now := strings.Split(text, "\n")
	for _, line := range now {
		if !slices.Contains(before, line) {
			t.Errorf("new: %s", line)
		}
	}
	for _, line := range before {
		if !slices.Contains(now, line) {
			t.Errorf("gone: %s", line)
		}
	}
	if t.Failed() {
		t.Error("a release before reads what is new as if it were not there, and writes it back without: see docs/design/formats.md, and then go test ./test/shape -update")
	}
}

// fieldsOf adds a line for each field of a type, and for the types of ours in it.
func fieldsOf(t reflect.Type, lines map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		fieldsOf(t.Elem(), lines)
		return
	case reflect.Struct:
	default:
		return
	}
	if t == reflect.TypeFor[time.Time]() || !strings.HasPrefix(t.PkgPath(), strings.TrimSuffix(module, "/")) {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() {
			continue
		}
		line := fmt.Sprintf("%s.%s %s %q", strings.TrimPrefix(t.String(), "*"), f.Name, f.Type, tag)
		if lines[line] {
			continue
		}
		lines[line] = true
		fieldsOf(f.Type, lines)
	}
}

package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func all(t *testing.T, dir string) []Record {
	t.Helper()
	var all []Record
	if err := Read(dir, time.Time{}, func(r Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestClasses(t *testing.T) {
	for _, test := range []struct {
		record Record
		want   Class
	}{
		{Record{Service: "rds", Action: "CreateDBInstance", Status: 200}, Changed},
		{Record{Service: "rds", Action: "CreateDBInstance", Status: 400, Code: "DBInstanceAlreadyExists"}, Refused},
		{Record{Service: "rds", Action: "DescribeDBInstances", Status: 200}, Looked},
		{Record{Service: "rds", Action: "DescribeDBInstances", Status: 403, Code: "AccessDenied"}, Refused},
		{Record{Service: "rds", Action: "DownloadDBLogFilePortion", Status: 200}, Looked},
		{Record{Service: "sts", Action: "GetCallerIdentity", Status: 200}, Looked},
		{Record{Service: "sns", Action: "ConfirmSubscription", Status: 200, ByLink: true}, Changed},
		{Record{Service: "rds-db", Action: "connect", Status: 200}, Looked},
		{Record{Service: "howdah", Action: "status", Status: 200}, Looked},
		{Record{Service: "howdah", Action: "backup-show", Status: 200}, Looked},
		{Record{Service: "howdah", Action: "backup-drill", Status: 200}, Changed},
		{Record{Service: "howdah", Action: "operations", Status: 200}, Looked},
		{Record{Service: "howdah", Action: "operation-cancel", Status: 200}, Changed},
		{Record{Service: "howdah", Action: "key-create", Status: 200}, Changed},
		{Record{Code: "SignatureDoesNotMatch", Status: 403}, Refused},
		{Record{Service: "secretsmanager", Action: "GetSecretValue", Status: 200}, Opened},
		{Record{Service: "secretsmanager", Action: "GetSecretValue", Status: 400, Code: "AccessDeniedException"}, Refused},
		{Record{Service: "secretsmanager", Action: "DescribeSecret", Status: 200}, Looked},
	} {
		if got := classOf(test.record); got != test.want {
			t.Errorf("%+v: %s, want %s", test.record, got, test.want)
		}
	}
}

// TestNobodyPushesOthersOut checks a caller whose large calls are all refused, and one that only
// looks. They push out neither what others changed nor what was refused to others.
func TestNobodyPushesOthersOut(t *testing.T) {
	l := open(t)
	for _, f := range l.files {
		f.max, f.keepBytes = 64<<10, 256<<10
	}
	other := func(id, action string, status int) Record {
		return Record{Time: noon, RequestID: id, User: "arn:aws:iam::2:root", Account: "2", Service: "rds", Action: action, Status: status}
	}
	l.Write(other("changed", "DeleteDBInstance", 200))
	l.Write(other("refused", "DeleteDBInstance", 400))
	l.Write(other("looked", "DescribeDBInstances", 200))
	large := map[string]string{}
	for n := range 200 {
		large[fmt.Sprint("Tags.Tag.", n, ".Value")] = strings.Repeat("x", MaxText)
	}
	for n := range 3000 {
		r := Record{Time: noon.Add(time.Duration(n) * time.Millisecond), RequestID: "flood", User: "arn:aws:iam::1:user/looker", Account: "1", Service: "rds", Action: "CreateDBInstance", Status: 403, Code: "AccessDenied", Parameters: large}
		l.Write(r)
		r.Action, r.Status, r.Code = "DescribeDBInstances", 200, ""
		l.Write(r)
	}
	kept := map[string]bool{}
	for _, r := range all(t, l.dir) {
		kept[r.RequestID] = true
	}
	for _, id := range []string{"changed", "refused", "looked", "flood"} {
		if !kept[id] {
			t.Errorf("the record %q is gone", id)
		}
	}
}

// TestWhatIsTooMuchIsCounted checks calls that change nothing: only so much is kept a minute for
// one account, and the rest is counted. All is kept for another account, and of calls that change
// something.
func TestWhatIsTooMuchIsCounted(t *testing.T) {
	l := open(t)
	call := func(id, account string, status int, at time.Time) Record {
		return Record{Time: at, RequestID: id, User: "arn:aws:iam::" + account + ":root", Account: account, Action: "CreateDBInstance", Status: status, Parameters: map[string]string{"A": strings.Repeat("x", MaxText)}}
	}
	for n := range 500 {
		l.Write(call(fmt.Sprint(n), "1", 400, noon))
		l.Write(call(fmt.Sprint("changed", n), "1", 200, noon))
	}
	l.Write(call("other", "2", 400, noon))
	l.Write(call("later", "1", 400, noon.Add(time.Minute)))
	refused, changed, bare, unrecorded := 0, 0, 0, 0
	for _, r := range all(t, l.dir) {
		unrecorded += r.Unrecorded
		switch {
		case r.Status == 400:
			refused++
		case r.Cut == 1 && len(r.Parameters) == 0:
			bare++
			fallthrough
		default:
			changed++
		}
	}
	if refused+unrecorded != 502 || refused > 120 || refused < 50 {
		t.Errorf("%d refusals recorded, %d counted", refused, unrecorded)
	}
	if changed != 500 || bare < 300 || bare == 500 {
		t.Errorf("%d changes recorded, %d of them without parameters", changed, bare)
	}
	if got := all(t, l.dir); got[len(got)-1].RequestID != "later" {
		t.Errorf("the newest is %+v", got[len(got)-1])
	}
}

func TestCapped(t *testing.T) {
	large := map[string]string{"": "", "B": "é" + strings.Repeat("é", MaxText), strings.Repeat("n", 500): "x"}
	for n := range 100 {
		large[fmt.Sprintf("C%03d", n)] = strings.Repeat("x", 1000)
	}
	r := capped(Record{Action: strings.Repeat("a", 10000), UserAgent: strings.Repeat("ü", 10000), Parameters: large})
	text, err := json.Marshal(r)
	if err != nil || len(text) > MaxRecord+1024 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if len(r.Parameters)+r.Cut < len(large) || r.Parameters["C000"] == "" || len(r.Action) != maxField || !utf8.ValidString(r.UserAgent) || !utf8.ValidString(r.Parameters["B"]) {
		t.Errorf("%d parameters, %d cut", len(r.Parameters), r.Cut)
	}
	if len(large["B"]) <= MaxText {
		t.Error("the caller's own parameters were changed")
	}
	small := Record{Action: "X", Parameters: map[string]string{"A": "b", "E": ""}}
	if got := capped(small); fmt.Sprint(got) != fmt.Sprint(small) {
		t.Errorf("%+v", got)
	}
	if none := capped(Record{}); none.Parameters != nil {
		t.Error("a record without parameters has some")
	}
}

// TestADayIsOver checks that a file of an earlier day is put aside, by the process that wrote it
// and by the next one. What is kept has a largest size.
func TestADayIsOver(t *testing.T) {
	l := open(t)
	at := func(id string, when time.Time) Record {
		r := call(1)
		r.RequestID, r.Time = id, when
		return r
	}
	l.Write(at("a", noon))
	l.Write(at("b", noon.Add(11*time.Hour)))
	l.Write(at("c", noon.Add(13*time.Hour)))
	old, err := older(l.dir, string(Changed))
	if err != nil || len(old) != 1 {
		t.Fatalf("%v, %v", old, err)
	}
	l.Close()
	again := Open(l.dir, l.log)
	defer again.Close()
	written := noon.Add(13 * time.Hour)
	if err := os.Chtimes(filepath.Join(l.dir, string(Changed)), written, written); err != nil {
		t.Fatal(err)
	}
	again.Write(at("d", noon.Add(5*24*time.Hour)))
	if old, err = older(l.dir, string(Changed)); err != nil || len(old) != 2 {
		t.Fatalf("%v, %v", old, err)
	}
	if got := ids(t, l.dir, time.Time{}); got != "a b c d" {
		t.Error(got)
	}
	again.files[Changed].keepBytes = 1
	again.Write(at("e", noon.Add(6*24*time.Hour)))
	if got := ids(t, l.dir, time.Time{}); got != "e" {
		t.Error(got)
	}
}

// TestLogOfAnEarlierRelease checks that its one file of all calls is read beside the others.
func TestLogOfAnEarlierRelease(t *testing.T) {
	l := open(t)
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"time":"2026-11-20T12:00:00Z","request_id":"old","user":"u","status":403,"code":"AccessDenied"}` + "\n"
	if err := os.WriteFile(filepath.Join(l.dir, string(Changed)), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := call(2)
	refused.Code = "AccessDenied"
	l.Write(refused)
	l.Write(call(1))
	if got := ids(t, l.dir, time.Time{}); got != "old 1 2" {
		t.Error(got)
	}
}

// TestNobodyReadsASecretUnseen checks a caller that has looked at so much that its looks are no
// longer recorded. It still cannot read a secret without a record. And to read all the time pushes
// out no record of a change.
func TestNobodyReadsASecretUnseen(t *testing.T) {
	l := open(t)
	for _, f := range l.files {
		f.max, f.keepBytes = 64<<10, 256<<10
	}
	call := func(id, service, action string) Record {
		return Record{
			Time: noon, RequestID: id, User: "arn:aws:iam::1:root", Account: "1", Service: service, Action: action, Status: 200,
			Parameters: map[string]string{"SecretId": "rds!db-1"},
		}
	}
	l.Write(call("changed", "rds", "DeleteDBInstance"))
	for range 2 * share / size(call("", "rds", "DescribeDBInstances")) {
		l.Write(call("look", "rds", "DescribeDBInstances"))
	}
	l.Write(call("read", "secretsmanager", "GetSecretValue"))
	seen := map[string]Record{}
	err := Read(l.dir, time.Time{}, func(r Record) error {
		seen[r.RequestID] = r
		return nil
	})
	if err != nil || seen["read"].Parameters["SecretId"] != "rds!db-1" || seen["read"].Unrecorded == 0 {
		t.Errorf("the read secret is recorded as %+v, %v", seen["read"], err)
	}
	for range 2000 {
		l.Write(call("again", "secretsmanager", "GetSecretValue"))
	}
	err = Read(l.dir, time.Time{}, func(r Record) error {
		seen[r.RequestID+" later"] = r
		return nil
	})
	if err != nil || seen["changed later"].Action == "" || seen["again later"].Action == "" {
		t.Errorf("pushed out: %v, %v", seen, err)
	}
}

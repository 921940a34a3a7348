package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	awskms "howdah/internal/aws/kms"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/kms"
	"howdah/internal/state"
)

// kms makes a call of KMS and decodes its answer.
func (u *user) kms(name, body string, out any) (code, message string) {
	u.Helper()
	return u.json("kms", "TrentService."+name, body, out, nil)
}

func (u *user) json(service, target, body string, out any, change func(*http.Request)) (code, message string) {
	u.Helper()
	r, err := http.NewRequestWithContext(u.Context(), http.MethodPost, u.http.URL+"/", strings.NewReader(body))
	if err != nil {
		u.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", target)
	sigv4.Sign(r, []byte(body), sigv4.Credentials{AccessKeyID: u.key, SecretAccessKey: u.secret}, u.region, service, u.now())
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		u.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
		u.Fatalf("%s: %s: %v", target, answer.Header.Get("Content-Type"), err)
	}
	if answer.StatusCode != http.StatusOK {
		var failed struct {
			Type    string `json:"__type"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(text, &failed); err != nil || failed.Type == "" {
			u.Fatalf("%s: status %d: %s", target, answer.StatusCode, text)
		}
		return failed.Type, failed.Message
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			u.Fatalf("%s: %v: %s", target, err, text)
		}
	}
	return "", ""
}

// kmsRefuses is what KMS answers to a call.
func (u *user) kmsRefuses(name, body, code, message string) {
	u.Helper()
	if got, text := u.kms(name, body, nil); got != code || !strings.Contains(text, message) {
		u.Errorf("%s %s: %q %q, want %q %q", name, body, got, text, code, message)
	}
}

func (u *user) carriedOut(name, body string, out any) {
	u.Helper()
	if code, text := u.kms(name, body, out); code != "" {
		u.Fatalf("%s %s: %s: %s", name, body, code, text)
	}
}

func quote(name string) string { return `{"KeyId":"` + name + `"}` }

// What is looked at of answers.
type keyOutput struct {
	KeyMetadata struct {
		AWSAccountId, KeyId, Arn, Description, KeyState, KeyManager string
		CreationDate                                                float64
		Enabled                                                     bool
	}
}

type listAliasesOutput struct {
	Aliases []struct{ AliasName, TargetKeyId string }
}

type listKeysOutput struct {
	Keys       []struct{ KeyId, KeyArn string }
	NextMarker string
	Truncated  bool
}

type deletionOutput struct {
	KeyId, KeyState     string
	DeletionDate        *float64
	PendingWindowInDays int
}

func TestKMS(t *testing.T) {
	u := newWorld(t).user(t)
	u.encrypts("a", "b", "c")
	var made, shown keyOutput
	u.carriedOut("CreateKey", `{"Description":"mine","Tags":[{"TagKey":"team","TagValue":"x"}]}`, &made)
	k := made.KeyMetadata
	if k.KeyState != "Enabled" || !k.Enabled || k.KeyManager != "CUSTOMER" || k.Description != "mine" || k.AWSAccountId != u.account || time.Since(time.Unix(int64(k.CreationDate), 0)) > time.Hour {
		t.Errorf("%+v", k)
	}
	for _, name := range []string{k.KeyId, k.Arn} {
		if u.carriedOut("DescribeKey", quote(name), &shown); shown.KeyMetadata.Arn != k.Arn {
			t.Errorf("%s: %+v", name, shown)
		}
	}
	for body, code := range map[string]string{
		`{"KeyUsage":"SIGN_VERIFY"}`: "UnsupportedOperationException", `{"KeySpec":"RSA_2048"}`: "UnsupportedOperationException",
		`{"MultiRegion":true}`: "UnsupportedOperationException", `{"Policy":"{}"}`: "UnsupportedOperationException", `{"Origin":"EXTERNAL"}`: "UnsupportedOperationException",
		`[]`: "SerializationException", `{`: "SerializationException", `{"Description":"` + strings.Repeat("x", 8193) + `"}`: "ValidationException",
	} {
		u.kmsRefuses("CreateKey", body, code, "")
	}
	stranger := u.world.user(t)
	stranger.kmsRefuses("DescribeKey", quote(k.Arn), "NotFoundException", "does not exist")
	stranger.kmsRefuses("ScheduleKeyDeletion", quote(k.Arn), "NotFoundException", "does not exist")
	u.kmsRefuses("DescribeKey", quote("mine"), "NotFoundException", "does not exist")
	u.kmsRefuses("DescribeKey", `{}`, "ValidationException", "keyId")
	u.kmsRefuses("Decrypt", `{}`, "UnknownOperationException", "Decrypt")

	var aliases listAliasesOutput
	if u.carriedOut("ListAliases", `{}`, &aliases); len(aliases.Aliases) != 1 || aliases.Aliases[0].AliasName != "alias/aws/rds" || aliases.Aliases[0].TargetKeyId != "" {
		t.Errorf("%+v", aliases)
	}
	u.carriedOut("DescribeKey", quote("alias/aws/rds"), &shown)
	own := shown.KeyMetadata
	if u.carriedOut("DescribeKey", quote("alias/aws/rds"), &shown); own.KeyManager != "AWS" || shown.KeyMetadata.KeyId != own.KeyId {
		t.Errorf("%+v, and again %+v", own, shown)
	}
	if u.carriedOut("ListAliases", quote(own.KeyId), &aliases); len(aliases.Aliases) != 1 || aliases.Aliases[0].TargetKeyId != own.KeyId {
		t.Errorf("%+v", aliases)
	}
	aliases = listAliasesOutput{}
	if u.carriedOut("ListAliases", quote(k.KeyId), &aliases); len(aliases.Aliases) != 0 {
		t.Errorf("%+v", aliases)
	}
	var page, rest listKeysOutput
	u.carriedOut("ListKeys", `{"Limit":1}`, &page)
	u.carriedOut("ListKeys", `{"Limit":1,"Marker":"`+page.NextMarker+`"}`, &rest)
	if len(page.Keys) != 1 || !page.Truncated || len(rest.Keys) != 1 || rest.Truncated || page.Keys[0] == rest.Keys[0] {
		t.Errorf("%+v, then %+v", page, rest)
	}
	u.kmsRefuses("ListKeys", `{"Limit":0}`, "ValidationException", "Limit")
	for _, name := range []string{"ScheduleKeyDeletion", "DisableKey"} {
		u.kmsRefuses(name, quote(own.KeyId), "AccessDeniedException", "alias/aws/rds")
		u.kmsRefuses(name, quote("alias/aws/rds"), "InvalidArnException", "alias")
	}

	// A key with a database stays; one without goes, when its time has come.
	u.do(with(newDB, encrypted, "KmsKeyId="+k.Arn))
	for _, name := range []string{"ScheduleKeyDeletion", "DisableKey"} {
		u.kmsRefuses(name, quote(k.KeyId), "KMSInvalidStateException", u.instanceRecord("db").ResourceID)
	}
	u.settle()
	u.do(dropDB)
	u.put(state.Delete(state.StorageKey(u.instanceRecord("db").ResourceID))) // as reconcile does
	u.kmsRefuses("ScheduleKeyDeletion", `{"KeyId":"`+k.KeyId+`","PendingWindowInDays":6}`, "ValidationException", "between 7 and 30")
	u.kmsRefuses("CancelKeyDeletion", quote(k.KeyId), "KMSInvalidStateException", "not pending deletion")
	var deletion deletionOutput
	u.carriedOut("ScheduleKeyDeletion", `{"KeyId":"`+k.KeyId+`","PendingWindowInDays":7}`, &deletion)
	if deletion.KeyId != k.Arn || deletion.KeyState != "PendingDeletion" || deletion.PendingWindowInDays != 7 || deletion.DeletionDate == nil {
		t.Errorf("%+v", deletion)
	}
	u.kmsRefuses("ScheduleKeyDeletion", quote(k.KeyId), "KMSInvalidStateException", "pending deletion")
	u.kmsRefuses("EnableKey", quote(k.KeyId), "KMSInvalidStateException", "pending deletion")
	u.try(with(newDB, "DBInstanceIdentifier=late", encrypted, "KmsKeyId="+k.KeyId)).is("KMSKeyNotAccessibleFault", k.KeyId)
	u.carriedOut("CancelKeyDeletion", quote(k.KeyId), nil)
	if u.carriedOut("DescribeKey", quote(k.KeyId), &shown); shown.KeyMetadata.KeyState != "Disabled" {
		t.Errorf("%+v", shown)
	}
	u.carriedOut("EnableKey", quote(k.KeyId), nil)
	u.carriedOut("ScheduleKeyDeletion", quote(k.KeyId), nil)
	at := time.Now().Add(30*24*time.Hour - time.Hour)
	u.at(at)
	if err := awskms.DeleteKeys(t.Context(), u.server.client, u.now()); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Load[kms.Key](u.server.Cache, state.KMSKey(u.account, u.region, k.KeyId)); err != nil {
		t.Errorf("deleted too soon: %v", err)
	}
	u.at(at.Add(2 * time.Hour))
	if err := awskms.DeleteKeys(t.Context(), u.server.client, u.now()); err != nil {
		t.Fatal(err)
	}
	u.kmsRefuses("DescribeKey", quote(k.KeyId), "NotFoundException", "does not exist")
	u.carriedOut("DescribeKey", quote(own.KeyId), nil)
}

func TestWhoMayCallKMS(t *testing.T) {
	u := newWorld(t).user(t)
	mine := u.customerKey(u.region, nil)
	wrong := *u
	wrong.secret = "wrong"
	if code, _ := wrong.kms("ListKeys", `{}`, nil); code != "InvalidSignatureException" {
		t.Errorf("with a wrong secret: %s", code)
	}
	if code, _ := u.json("kms", "Other.ListKeys", `{}`, nil, nil); code != "UnknownOperationException" {
		t.Errorf("of a service that nobody knows: %s", code)
	}
	exchange := func(r *http.Request) { r.Header.Set("X-Amz-Target", "TrentService.ListAliases") }
	if code, _ := u.json("kms", "TrentService.ListKeys", `{}`, nil, exchange); code == "" {
		t.Error("an action that was not signed was done")
	}
	limited := u.withPolicy(`{"Effect":"Allow","Action":"kms:DescribeKey","Resource":"` + mine.ARN() + `"}`)
	limited.carriedOut("DescribeKey", quote(mine.ID), nil)
	limited.kmsRefuses("CreateKey", `{}`, "AccessDeniedException", "kms:CreateKey")
	limited.kmsRefuses("ScheduleKeyDeletion", quote(mine.ID), "AccessDeniedException", "kms:ScheduleKeyDeletion")
	limited.kmsRefuses("DescribeKey", quote("alias/aws/rds"), "AccessDeniedException", "kms:DescribeKey")
	// Nobody can look a key's tags up: a policy by them denies, whatever the key.
	for _, condition := range []string{`"StringEquals":{"aws:ResourceTag/keep":"yes"}`, `"StringNotEquals":{"aws:ResourceTag/keep":"no"}`, `"Null":{"aws:ResourceTag/keep":"false"}`} {
		tagged := u.withPolicy(`[{"Effect":"Allow","Action":"kms:*","Resource":"*"},{"Effect":"Deny","Action":["kms:ScheduleKeyDeletion","kms:DisableKey"],"Resource":"*","Condition":{` + condition + `}}]`)
		tagged.kmsRefuses("ScheduleKeyDeletion", quote(mine.ID), "AccessDeniedException", "explicit deny")
		tagged.kmsRefuses("DisableKey", quote(mine.ARN()), "AccessDeniedException", "explicit deny")
		tagged.carriedOut("DescribeKey", quote(mine.ID), nil)
		tagged.carriedOut("ListKeys", `{}`, nil)
	}
	u.withPolicy(`{"Effect":"Allow","Action":"kms:*","Resource":"*","Condition":{"StringNotEquals":{"aws:ResourceTag/keep":"yes"}}}`).
		kmsRefuses("ScheduleKeyDeletion", quote(mine.ID), "AccessDeniedException", "kms:ScheduleKeyDeletion")
	if strings.Contains(u.log.String(), string(mine.Sealed)) || bytes.Contains([]byte(u.log.String()), mine.Sealed) {
		t.Error("a key is in the log")
	}
}

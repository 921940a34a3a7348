package server

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/aws/audit"
)

// TestPasswordsOfEndpoints: what opens somebody else's door is told to that door
// only: neither answers, nor errors, nor logs have it.
func TestPasswordsOfEndpoints(t *testing.T) {
	const secret = "opens-sesame"
	w := newWorld(t)
	u := w.user(t)
	u.do(newTopic)
	endpoint := func(text string) string { return with(subHook, "Endpoint="+url.QueryEscape(text)) }
	u.do(endpoint("https://user:" + secret + "@hook.example/in"))
	sub := *u.asked().Only
	if !strings.Contains(sub.Endpoint, secret) {
		t.Errorf("delivers to %s", sub.Endpoint)
	}
	u.do(endpoint("https://user:" + secret + "@hook.example/in")) // the same one
	u.do(endpoint("https://hook.example/in?key=" + secret))
	u.do("Publish?Message=" + secret + "&Subject=" + secret + "&TopicArn=" + topicARN)
	u.do("ConfirmSubscription?Token=" + u.asked().Only.Token + "&TopicArn=" + topicARN)
	const shown = "https://user:****@hook.example/in"
	for _, list := range []string{"ListSubscriptions", "ListSubscriptionsByTopic?TopicArn=" + topicARN} {
		a := u.do(list)
		if all := a.result().texts("Subscriptions/member/Endpoint"); len(all) != 2 || !strings.Contains(a.body, shown) {
			t.Errorf("%s: %q", list, all)
		}
		if strings.Contains(a.body, ":"+secret) {
			t.Errorf("%s tells the password: %s", list, a.body)
		}
	}
	if got := attributesOf(u.do("GetSubscriptionAttributes?SubscriptionArn=" + sub.ARN()))["Endpoint"]; got != shown {
		t.Errorf("shown as %s", got)
	}
	for _, bad := range []string{
		"http://user:" + secret + "@hook.example/", "https://user:" + secret + "/@hook.example/", "https://user:" + secret + "@", "https://user:" + secret + "@h%zz/", "https://h%zz/?key=" + secret,
	} {
		refused := u.try(endpoint(bad))
		refused.is(badParam, "Endpoint")
		if strings.Contains(refused.body, secret) {
			t.Errorf("the error tells the password: %s", refused.body)
		}
	}
	var written []byte
	for _, class := range []audit.Class{audit.Changed, audit.Looked, audit.Refused} {
		text, err := os.ReadFile(filepath.Join(w.server.Home.AuditDir(), string(class)))
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, text...)
	}
	for name, text := range map[string]string{"audit log": string(written), "log": w.log.String()} {
		for _, line := range strings.Split(text, "\n") {
			if strings.Contains(line, secret) || strings.Contains(line, u.asked().Only.Token) {
				t.Errorf("the %s holds %s", name, line)
			}
		}
	}
	if !strings.Contains(string(written), fmt.Sprintf("%q:%q", "Endpoint", "https://****@hook.example/in")) {
		t.Error("the audit log does not say where to")
	}
}

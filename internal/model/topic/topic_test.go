package topic

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/model/event"
	"howdah/internal/model/spec"
)

var (
	scope  = spec.Scope{Account: "123456789012", Region: "us-east-1"}
	moment = time.Date(2026, 11, 23, 5, 0, 0, 123456789, time.UTC)
)

const base = "https://127.0.0.1:7443"

func TestARNs(t *testing.T) {
	sub := Subscription{Scope: scope, Topic: "alarms", ID: "1-2"}
	if got := sub.ARN(); got != "arn:aws:sns:us-east-1:123456789012:alarms:1-2" {
		t.Error(got)
	}
	if s, name, id, ok := ParseSubscriptionARN(sub.ARN()); !ok || s != scope || name != "alarms" || id != "1-2" {
		t.Error(s, name, id, ok)
	}
	if s, name, ok := ParseARN(Topic{Scope: scope, Name: "alarms"}.ARN()); !ok || s != scope || name != "alarms" {
		t.Error(s, name, ok)
	}
	for _, bad := range []string{"", "alarms", "arn:aws:sqs:r:a:n", "arn:aws:sns::a:n", "arn:aws:sns:r::n", "arn:aws:sns:r:a:", "x:aws:sns:r:a:n", sub.ARN()} {
		if _, _, ok := ParseARN(bad); ok {
			t.Errorf("%q is taken for a topic", bad)
		}
	}
	for _, bad := range []string{"PendingConfirmation", "arn:aws:sns:r:a:n", "arn:aws:sns:r:a:n:"} {
		if _, _, _, ok := ParseSubscriptionARN(bad); ok {
			t.Errorf("%q is taken for a subscription", bad)
		}
	}
}

func TestWants(t *testing.T) {
	m := Message{Body: []byte(`{"n":7}`), Attributes: map[string]Attribute{"EventID": {"String", "RDS-EVENT-0005"}}}
	set := func(confirmed bool, attributes ...string) Subscription {
		s := Subscription{Protocol: HTTPS, Confirmed: confirmed, Attributes: map[string]string{}}
		for i := 0; i < len(attributes); i += 2 {
			s.Attributes[attributes[i]] = attributes[i+1]
		}
		return s
	}
	cases := []struct {
		sub  Subscription
		want bool
	}{
		{set(true), true},
		{set(false), false},
		{set(true, FilterPolicy, `{"EventID":["RDS-EVENT-0005"]}`), true},
		{set(true, FilterPolicy, `{"EventID":["RDS-EVENT-0006"]}`), false},
		{set(true, FilterPolicy, `{"n":[7]}`), false},
		{set(true, FilterPolicy, `{"n":[7]}`, FilterPolicyScope, ScopeBody), true},
		{set(true, FilterPolicy, `broken`), false},
	}
	for _, c := range cases {
		if got := c.sub.Wants(m); got != c.want {
			t.Errorf("%+v wants: %v", c.sub.Attributes, got)
		}
	}
}

func made(t *testing.T, number string) event.Event {
	t.Helper()
	e, err := event.Make(event.Source{Scope: scope, Type: event.Instance, Name: "db"}, number, moment)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEventSubscriptionWants(t *testing.T) {
	all := EventSubscription{Scope: scope, Enabled: true, Created: moment}
	e := made(t, "0005")
	cases := map[string]struct {
		change func(*EventSubscription)
		want   bool
	}{
		"all":               {func(*EventSubscription) {}, true},
		"not enabled":       {func(s *EventSubscription) { s.Enabled = false }, false},
		"another region":    {func(s *EventSubscription) { s.Region = "eu-west-1" }, false},
		"made later":        {func(s *EventSubscription) { s.Created = moment.Add(1) }, false},
		"its type":          {func(s *EventSubscription) { s.SourceType = event.Instance }, true},
		"another type":      {func(s *EventSubscription) { s.SourceType = event.Cluster }, false},
		"its name":          {func(s *EventSubscription) { s.Sources = []string{"x", "db"} }, true},
		"another name":      {func(s *EventSubscription) { s.Sources = []string{"x"} }, false},
		"its category":      {func(s *EventSubscription) { s.Categories = []string{"creation"} }, true},
		"other categories ": {func(s *EventSubscription) { s.Categories = []string{"failover"} }, false},
	}
	for name, c := range cases {
		s := all
		c.change(&s)
		if s.Wants(scope, e) != c.want {
			t.Errorf("%s: wanted: %v", name, !c.want)
		}
	}
}

// TestEventMessage holds a message against the form in which RDS publishes.
func TestEventMessage(t *testing.T) {
	s := EventSubscription{Scope: scope, Name: "watch", TopicARN: ARN(scope, "alarms")}
	e := made(t, "0020")
	m, err := EventMessage(s, "key", e, base, []spec.Tag{{Key: "a", Value: "<b>&"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Event Source":"db-instance","Event Time":"2026-11-23 05:00:00.123","Identifier Link":"` + base +
		`/rds/home?region=us-east-1#dbinstance:id=db","Source ID":"db","Source ARN":"arn:aws:rds:us-east-1:123456789012:db:db",` +
		`"Event ID":"http://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_Events.Messages.html#RDS-EVENT-0020",` +
		`"Event Message":"Recovery of the DB instance has started. Recovery time will vary with the amount of data to be recovered.","Tags":{"a":"<b>&"}}`
	if diff := cmp.Diff(want, string(m.Body)); diff != "" {
		t.Error(diff)
	}
	if m.Subject != "RDS Notification Message" || m.Topic != "alarms" || m.Attributes["EventID"].Value != "RDS-EVENT-0020" || m.Attributes["Resource"].Value != e.ARN {
		t.Errorf("%+v", m)
	}
	again, err := EventMessage(s, "key", e, base, nil)
	if err != nil || again.ID != m.ID || len(m.ID) != 36 {
		t.Errorf("the same event has the ids %s and %s: %v", m.ID, again.ID, err)
	}
	if other, err := EventMessage(s, "key2", e, base, nil); err != nil || other.ID == m.ID {
		t.Errorf("two events have one id: %v", err)
	}
	if without, err := EventMessage(s, "key", e, base, nil); err != nil || !strings.HasSuffix(string(without.Body), `"Tags":{}}`) {
		t.Errorf("%s, %v", without.Body, err)
	}
	s.TopicARN = "alarms"
	if _, err := EventMessage(s, "key", e, base, nil); err == nil {
		t.Error("a topic without an ARN")
	}
}

func TestEnvelope(t *testing.T) {
	sub := Subscription{Scope: scope, Topic: "alarms", ID: "1-2", Protocol: HTTP, Token: "t&k"}
	m := Message{
		Kind: Notification, ID: "id", Scope: scope, Topic: "alarms", Subject: "s", Body: []byte("<b> & é"), At: moment,
		Attributes: map[string]Attribute{"a": {"String", "v"}},
	}
	e := NewEnvelope(m, sub, base)
	if want := "Message\n<b> & é\nMessageId\nid\nSubject\ns\nTimestamp\n2026-11-23T05:00:00.123Z\nTopicArn\n" + sub.ARN()[:len(sub.ARN())-4] + "\nType\nNotification\n"; e.Signed() != want {
		t.Errorf("signed is %q, want %q", e.Signed(), want)
	}
	text, err := e.JSON()
	if err != nil || !strings.Contains(string(text), `"Message":"<b> & é"`) || strings.Contains(string(text), "Token") {
		t.Errorf("%s, %v", text, err)
	}
	var back Envelope
	if err := json.Unmarshal(text, &back); err != nil || cmp.Diff(e, back) != "" {
		t.Errorf("%v %s", err, cmp.Diff(e, back))
	}
	m.Kind, m.Subject = SubscriptionConfirmation, ""
	e = NewEnvelope(m, sub, base)
	if want := base + "/?Action=ConfirmSubscription&TopicArn=arn%3Aaws%3Asns%3Aus-east-1%3A123456789012%3Aalarms&Token=t%26k"; e.SubscribeURL != want {
		t.Errorf("link %s", e.SubscribeURL)
	}
	if !strings.Contains(e.Signed(), "\nSubscribeURL\n"+e.SubscribeURL+"\nTimestamp\n") || !strings.Contains(e.Signed(), "\nToken\nt&k\n") || strings.Contains(e.Signed(), "Subject") {
		t.Errorf("signed is %q", e.Signed())
	}
	if e.UnsubscribeURL != "" || e.MessageAttributes != nil {
		t.Errorf("%+v", e)
	}
}

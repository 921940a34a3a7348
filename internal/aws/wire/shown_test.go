package wire

import (
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/api"
	"howdah/api/rds"
	"howdah/api/sns"
)

func TestShown(t *testing.T) {
	for _, test := range []struct {
		action, query string
		want          map[string]string
	}{
		{
			"CreateDBInstance", "DBInstanceIdentifier=db&MasterUserPassword=secret&Tags.Tag.1.Key=a&Tags.Tag.1.Value=b&VpcSecurityGroupIds.VpcSecurityGroupId.1=sg-1",
			map[string]string{
				"DBInstanceIdentifier": "db", "MasterUserPassword": Masked, "Tags.Tag.1.Key": "a", "Tags.Tag.1.Value": "b",
				"VpcSecurityGroupIds.VpcSecurityGroupId.1": "sg-1",
			},
		},
		{"CreateDBInstance", "masteruserpassword=secret&MasterUserPassword.1=secret&Action=CreateDBInstance&Version=1", map[string]string{"MasterUserPassword.1": Masked}},
		{"CreateDBInstance", "DBInstanceIdentifier.x=secret&Tags.Tag=secret&Tags.Tag.1.x=secret&Tags.Tag.1.Key.y=secret", map[string]string{}},
		{"CopyDBSnapshot", "PreSignedUrl=https://secret", map[string]string{"PreSignedUrl": Masked}},
		{"ModifyDBCluster", "ServerlessV2ScalingConfiguration.MinCapacity=1&EnableHttpEndpoint=", map[string]string{"ServerlessV2ScalingConfiguration.MinCapacity": "1", "EnableHttpEndpoint": ""}},
		{"DescribeDBInstances", "Marker=" + strings.Repeat("m", 300), map[string]string{"Marker": strings.Repeat("m", maxShown) + "…"}},
		{"DescribeDBInstances", "Filters.Filter.1.Values.Value.2=x", map[string]string{"Filters.Filter.1.Values.Value.2": "x"}},
	} {
		shows(t, rds.Service, test.action, test.query, test.want)
	}
}

func TestShownOfSNS(t *testing.T) {
	for _, test := range []struct {
		action, query string
		want          map[string]string
	}{
		{
			"Subscribe", "Protocol=https&Endpoint=https://user:secret@hook.example/in?key=secret",
			map[string]string{"Protocol": "https", "Endpoint": "https://****@hook.example/in?****"},
		},
		{"Subscribe", "Endpoint=ops@example.org", map[string]string{"Endpoint": "ops@example.org"}},
		{"Publish", "TopicArn=arn&Message=secret&Subject=secret", map[string]string{"TopicArn": "arn", "Message": Masked, "Subject": Masked}},
		{"ConfirmSubscription", "TopicArn=arn&Token=secret", map[string]string{"TopicArn": "arn", "Token": Masked}},
		{"SetTopicAttributes", "AttributeName=DisplayName&AttributeValue=see+https://u:secret@h/", map[string]string{"AttributeName": "DisplayName", "AttributeValue": "see https://u:****@h/"}},
	} {
		shows(t, sns.Service, test.action, test.query, test.want)
	}
}

func TestMaskURL(t *testing.T) {
	for _, test := range []struct{ url, masked, hidden string }{
		{"https://hook.example/in", "https://hook.example/in", "https://hook.example/in"},
		{"https://u:p@hook.example:8443/in", "https://u:****@hook.example:8443/in", "https://****@hook.example:8443/in"},
		{"https://u:a@b:c@hook.example", "https://u:****@hook.example", "https://****@hook.example"},
		{"https://u:@hook.example", "https://u:****@hook.example", "https://****@hook.example"},
		{"https://:p@hook.example", "https://:****@hook.example", "https://****@hook.example"},
		{"https://token@hook.example", "https://token@hook.example", "https://****@hook.example"},
		{"https://hook.example/a:b@c", "https://hook.example/a:b@c", "https://****@c"},
		{"https://hook.example:80/?to=a:b@c", "https://hook.example:80/?to=a:b@c", "https://****@c"},
		{"https://[::1]:80/", "https://[::1]:80/", "https://[::1]:80/"},
		{"https://u:p@[::1]:80/?k=v", "https://u:****@[::1]:80/?k=v", "https://****@[::1]:80/?****"},
		{"https://u:half/of@hook.example", "https://u:half/of@hook.example", "https://****@hook.example"},
		{"ops@example.org", "ops@example.org", "ops@example.org"},
		{"", "", ""},
	} {
		if got := MaskURL(test.url); got != test.masked {
			t.Errorf("%s: masked %s, want %s", test.url, got, test.masked)
		}
		if got := HideURL(test.url); got != test.hidden {
			t.Errorf("%s: hidden %s, want %s", test.url, got, test.hidden)
		}
	}
}

// TestNoSensitiveMemberIsShown checks all actions of all models.
func TestNoSensitiveMemberIsShown(t *testing.T) {
	checked := 0
	for _, service := range Services() {
		for i := range service.Actions {
			action := &service.Actions[i]
			for _, name := range sensitiveNames(reflect.TypeOf(action.Input()).Elem(), "", 0) {
				checked++
				if shown := Shown(action, url.Values{name: {"secret"}})[name]; shown != Masked {
					t.Errorf("%s: %s is shown as %q", action.Name, name, shown)
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d sensitive members", checked)
	}
}

func sensitiveNames(t reflect.Type, prefix string, depth int) []string {
	var names []string
	for f := range t.Fields() {
		member, ok := api.MemberOf(f)
		if !ok || depth > 5 {
			continue
		}
		name, inner := prefix+member.Name, f.Type
		switch {
		case member.Sensitive:
			names = append(names, name)
		case inner.Kind() == reflect.Pointer && inner.Elem().Kind() == reflect.Struct && inner.Elem().PkgPath() == t.PkgPath():
			names = append(names, sensitiveNames(inner.Elem(), name+".", depth+1)...)
		case inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct:
			names = append(names, sensitiveNames(inner.Elem(), name+"."+member.Element+".1.", depth+1)...)
		}
	}
	return names
}

func shows(t *testing.T, service api.Service, name, query string, want map[string]string) {
	t.Helper()
	action, ok := service.Action(name)
	if !ok {
		t.Fatal(name)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, Shown(action, values)); diff != "" {
		t.Errorf("%s?%s\n%s", name, query, diff)
	}
}

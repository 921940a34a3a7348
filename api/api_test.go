package api_test

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/api"
)

func TestMemberOf(t *testing.T) {
	type shape struct {
		Plain  *string  `wire:"Plain"`
		List   []string `wire:"Lists,list=item,each=E"`
		All    *string  `wire:"All,required,sensitive,check=C"`
		NoTag  *string
		Absent *string  `json:"Absent"`
		Two    []string `wire:"two,param=Two,flat,list=item"`
	}
	want := map[string]api.Member{
		"Plain": {Name: "Plain", Param: "Plain"},
		"List":  {Name: "Lists", Param: "Lists", Element: "item", Each: "E"},
		"All":   {Name: "All", Param: "All", Required: true, Sensitive: true, Check: "C"},
		"Two":   {Name: "two", Param: "Two", Flat: true, Element: "item"},
	}
	got := map[string]api.Member{}
	for field := range reflect.TypeFor[shape]().Fields() {
		if member, ok := api.MemberOf(field); ok {
			got[field.Name] = member
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestServiceAction(t *testing.T) {
	s := api.Service{Actions: []api.Action{{Name: "A"}, {Name: "B"}, {Name: "D"}}}
	for _, name := range []string{"A", "B", "D"} {
		if a, ok := s.Action(name); !ok || a.Name != name {
			t.Errorf("%s: got %v, %v", name, a, ok)
		}
	}
	for _, name := range []string{"", "C", "E", "a"} {
		if a, ok := s.Action(name); ok {
			t.Errorf("%s: got %v", name, a)
		}
	}
}

// SDKs retry what is 500 or above: only what is not the client's fault may be.
func TestCommonErrorsBlameTheRightSide(t *testing.T) {
	ours := map[string]bool{api.ErrInternalFailure: true, api.ErrServiceUnavailable: true}
	for code, status := range api.CommonErrors {
		if (status >= http.StatusInternalServerError) != ours[code] {
			t.Errorf("%s has the status %d", code, status)
		}
	}
}

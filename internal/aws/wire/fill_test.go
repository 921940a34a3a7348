package wire_test

import (
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"time"
	"unicode/utf8"

	"howdah/api"
)

// awkward holds what a codec gets wrong: markup, quotes, line ends, form and
// path syntax, characters outside of ASCII and of the basic plane.
const awkward = " a<b>&\"'\r\n\t\r x=1&y%2B+;/.\u00e9\u6f22\U0001F600\u0085\u2028 "

// samples holds a text for every pattern in the models.
var samples = []string{
	"db.r6g.large",
	"arn:aws:rds:us-east-1:123456789012:cluster:c1",
	"arn:aws:iam::123456789012:role/howdah",
	"arn:aws:backup:us-east-1:123456789012:recovery-point:awsbackup:job-1",
	"arn:aws:rds:us-east-1:123456789012:integration:01234567-89ab-cdef-0123-456789abcdef",
	"name-1", "1.2", "description",
}

// filler sets every member of a structure to a value of its own that is within
// the model's limits.
type filler struct {
	t     testing.TB
	limit map[string]api.Check
	extra string // behind the number that makes each text its own
	n     int
}

func (f *filler) structure(v reflect.Value) {
	for field := range v.Type().Fields() {
		member, ok := api.MemberOf(field)
		if !ok {
			f.t.Fatalf("field %s of %s has no tag", field.Name, v.Type())
		}
		f.member(v.FieldByIndex(field.Index), member)
	}
}

func (f *filler) member(v reflect.Value, member api.Member) {
	f.n++
	switch v.Kind() {
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k1" + awkward: f.text(api.Check{}), "k2": ""}))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			if v.Index(i).Kind() == reflect.Struct {
				f.structure(v.Index(i))
			} else {
				v.Index(i).SetString(f.text(f.limit[member.Each]))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.scalar(v.Elem(), f.limit[member.Check])
	default:
		f.t.Fatalf("a member is a %s", v.Type())
	}
}

func (f *filler) scalar(v reflect.Value, limits api.Check) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text(limits))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(-f.n))
		if limits.Min != nil {
			v.SetInt(*limits.Min)
		}
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.125)
	case reflect.Bool:
		v.SetBool(f.n%2 == 0)
	default:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, f.n%1000*int(time.Millisecond), time.UTC)))
			return
		}
		f.structure(v)
	}
}

func (f *filler) text(limits api.Check) string {
	f.n++
	if limits.Enum != nil {
		return limits.Enum[f.n%len(limits.Enum)]
	}
	candidates := append([]string{fmt.Sprint(f.n, f.extra)}, samples...)
	for _, text := range candidates {
		if fits(limits, text) {
			return text
		}
	}
	f.t.Fatalf("no sample text fits %+v", limits)
	return ""
}

func fits(limits api.Check, text string) bool {
	n := int64(utf8.RuneCountInString(text))
	return (limits.Min == nil || n >= *limits.Min) && (limits.Max == nil || n <= *limits.Max) &&
		(limits.Pattern == "" || regexp.MustCompile(`^(?:`+limits.Pattern+`)$`).MatchString(text))
}

// filled returns a new structure with every member set.
func filled(t testing.TB, s *api.Service, structure any) any {
	f := &filler{t: t, limit: s.Checks, extra: awkward}
	f.structure(reflect.ValueOf(structure).Elem())
	return structure
}

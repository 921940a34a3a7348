package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/rds"

	"howdah/test/script"
)

// The tests understand what an AWS CLI says: an answer, no answer, an error of the API, or an error
// of its own.
func TestAnswersOfTheAWSCLI(t *testing.T) {
	for _, tt := range []struct {
		name  string
		run   finished
		code  string // of the refusal
		wrong string // part of an error that is none of the API
	}{
		{"an answer", finished{Out: `{"A": 1}`}, "", ""},
		{"none", finished{Out: "\n"}, "", ""},
		{"an error", finished{254, "", "\nAn error occurred (DBInstanceNotFound) when calling the DescribeDBInstances operation: none: not found\n"}, "DBInstanceNotFound", ""},
		{"an error after retries", finished{254, "", "An error occurred (Throttling) when calling the A operation (reached max retries: 1): slow"}, "Throttling", ""},
		{"one of its own", finished{252, "", `Unknown parameter in input: "B"`}, "", "Unknown parameter"},
		{"no JSON", finished{Out: "hello"}, "", "read the answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.run.answer()
			var refusal *script.Refusal
			switch {
			case tt.code != "":
				if !errors.As(err, &refusal) || refusal.Code != tt.code || strings.Contains(refusal.Message, "retries") {
					t.Errorf("%v is no refusal with %s", err, tt.code)
				}
			case tt.wrong != "":
				if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("%v has no %q", err, tt.wrong)
				}
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// If the SDK cannot take a step as it is written, that is an error, and not another call.
func TestGoSDKTakesNothingUnknown(t *testing.T) {
	g := goSDK{"rds": rds.New(rds.Options{})}
	for _, tt := range []struct {
		action string
		with   map[string]any
		wrong  string
	}{
		{"DescribeNothing", nil, "no method DescribeNothing"},
		{"DescribeDBInstances", map[string]any{"Instance": "a"}, `unknown field "Instance"`},
		{"DescribeDBInstances", map[string]any{"DBInstanceIdentifier": 1}, "the parameters of DescribeDBInstances"},
	} {
		if _, err := g.Call(t.Context(), "rds", tt.action, tt.with); err == nil || !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s with %v: %v, without %q", tt.action, tt.with, err, tt.wrong)
		}
	}
}

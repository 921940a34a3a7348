// Package script is a journey over every action that Howdah does, written once and walked by
// several clients: boto3, the AWS CLI of both generations, and the Go SDK.
//
// The steps are in steps/*.json, in the order of files. A step calls an action with parameters, and
// says what it wants of the answer: whatever the wanted JSON names must be there, and more may be.
// A list must have each of the wanted items somewhere. A wanted empty list must be empty. In texts,
// * stands for anything, and ${name} for a variable. A variable takes the first value that it meets
// in an answer, and keeps it. A step is tried again until it has what it wants, for as long as it
// says.
//
// Invariant: the script has every action of server.Implemented. A client that cannot walk a step is
// named in lacks, with the reason.
package script

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// Step is one call of an action.
type Step struct {
	Sentence string         `json:"step"`
	Call     string         `json:"call"`   // service and action: "rds CreateDBInstance"
	With     map[string]any `json:"with"`   // parameters
	Want     any            `json:"want"`   // of the answer; nil: nothing
	Fails    string         `json:"fails"`  // the error code that is wanted in its place
	Within   int            `json:"within"` // seconds in which it may be tried again; 0: once
}

// Split returns the service and the action of the step.
func (s Step) Split() (service, action string) {
	service, action, _ = strings.Cut(s.Call, " ")
	return service, action
}

//go:embed steps/*.json
var files embed.FS

// Steps reads the script.
func Steps() ([]Step, error) {
	entries, err := files.ReadDir("steps")
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	var all []Step
	for _, e := range entries {
		text, err := files.ReadFile(path.Join("steps", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the script: %w", err)
		}
		steps, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("read %s of the script: %w", e.Name(), err)
		}
		all = append(all, steps...)
	}
	return all, nil
}

func parse(text []byte) ([]Step, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var steps []Step
	if err := decoder.Decode(&steps); err != nil {
		return nil, err
	}
	for _, s := range steps {
		service, action := s.Split()
		switch {
		case s.Sentence == "" || service == "" || action == "":
			return nil, fmt.Errorf("the step %+v has no sentence, or no call", s)
		case s.Fails != "" && s.Want != nil:
			return nil, fmt.Errorf("the step %q wants an answer and an error", s.Sentence)
		}
	}
	return steps, nil
}

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"howdah/internal/testkit/patience"
	"howdah/test/script"
)

const (
	walkTimeout = 6 * time.Minute
	pause       = 500 * time.Millisecond // between two tries of a step
)

// walkActions makes a client walk the script of all actions.
func walkActions(t *testing.T, env map[string]string, name string, client script.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(walkTimeout))
	defer cancel()
	steps, err := script.Steps()
	if err != nil {
		t.Fatal(err)
	}
	r := receive(t)
	w := script.Walk{
		Name: name, Client: client, Pause: pause, Log: t.Logf,
		Given: script.Variables{"region": env["AWS_REGION"], "receiver": r.URL},
		Late:  map[string]func(context.Context) (any, error){"token": r.token, "received": r.message},
	}
	if err := w.Run(ctx, steps); err != nil {
		t.Error(err)
	}
}

// dialogue is a dialogue with a Python that answers lines of JSON for as long as it is open.
type dialogue struct {
	in  io.Writer
	out *bufio.Reader
}

func startPython(t *testing.T, env map[string]string, python string, args ...string) *dialogue {
	t.Helper()
	// This is not the test's context: the end of its input ends it.
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(walkTimeout)+time.Minute)
	command := exec.CommandContext(ctx, python, args...)
	command.Env = append(environ(env), "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1")
	var said bytes.Buffer
	command.Stderr = &said
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer cancel()
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, &said)
		}
	})
	return &dialogue{in, bufio.NewReader(out)}
}

func (d *dialogue) ask(question, answer any) error {
	line, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("ask Python: %w", err)
	}
	text, err := d.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read Python's answer: %w", err)
	}
	return json.Unmarshal(text, answer)
}

// boto3 has its clients in a Python of its own.
type boto3 struct{ *dialogue }

func newBoto3(t *testing.T, env map[string]string, python string) boto3 {
	t.Helper()
	return boto3{startPython(t, env, python, "actions_boto3.py")}
}

func (b boto3) Call(_ context.Context, service, action string, with map[string]any) (any, error) {
	var said struct {
		Answer        any
		Code, Message string
	}
	if err := b.ask(map[string]any{"service": service, "action": action, "with": with}, &said); err != nil {
		return nil, err
	}
	if said.Code != "" {
		return nil, &script.Refusal{Code: said.Code, Message: said.Message}
	}
	return said.Answer, nil
}

// commandLine is an AWS CLI: it runs for every call.
type commandLine struct {
	*dialogue
	endpoint string
}

// newCommandLine needs a CLI that is a Python program, as those of PyPI and of distributions are.
// It reads in the first line of the CLI which Python that is.
func newCommandLine(t *testing.T, env map[string]string, program string) commandLine {
	t.Helper()
	file, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	line, err := bufio.NewReader(io.LimitReader(file, 1024)).ReadString('\n')
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if err != nil || len(words) == 0 || !strings.Contains(words[0], "python") {
		t.Skipf("needs an AWS CLI that is a Python program: %s begins with %q", program, line)
	}
	return commandLine{startPython(t, env, words[0], "actions_cli.py", program), env["AWS_ENDPOINT_URL"]}
}

func (c commandLine) Call(_ context.Context, service, action string, with map[string]any) (any, error) {
	input, err := json.Marshal(with)
	if err != nil {
		return nil, err
	}
	var run finished
	// The endpoint is given as an option, too: before 2.13 the CLI did not know its variable.
	if err := c.ask([]string{
		"--output", "json", "--endpoint-url", c.endpoint, service, script.Command(action), "--cli-input-json", string(input),
	}, &run); err != nil {
		return nil, err
	}
	return run.answer()
}

// finished is what is left of a run of the CLI.
type finished struct {
	Code     int
	Out, Err string
}

var refusedByCLI = regexp.MustCompile(`An error occurred \((\S+)\) when calling the \w+ operation(?: \([^)]*\))?: (.*)`)

func (f finished) answer() (any, error) {
	if f.Code != 0 {
		if found := refusedByCLI.FindStringSubmatch(f.Err); found != nil {
			return nil, &script.Refusal{Code: found[1], Message: found[2]}
		}
		return nil, fmt.Errorf("the AWS CLI ended with %d: %s", f.Code, f.Err)
	}
	if strings.TrimSpace(f.Out) == "" {
		return map[string]any{}, nil
	}
	var answer any
	if err := json.Unmarshal([]byte(f.Out), &answer); err != nil {
		return nil, fmt.Errorf("read the answer of the AWS CLI: %w", err)
	}
	return answer, nil
}

// goSDK finds the methods of its clients by the names of actions.
type goSDK map[string]any

func newGoSDK(t *testing.T, env map[string]string) goSDK {
	t.Helper()
	config := goConfig(t, env)
	return goSDK{"rds": rds.NewFromConfig(config), "sns": sns.NewFromConfig(config), "sts": sts.NewFromConfig(config)}
}

func (g goSDK) Call(ctx context.Context, service, action string, with map[string]any) (any, error) {
	method := reflect.ValueOf(g[service]).MethodByName(action)
	if !method.IsValid() {
		return nil, fmt.Errorf("the SDK's client of %s has no method %s", service, action)
	}
	in := reflect.New(method.Type().In(1).Elem())
	if err := convert(with, in.Interface()); err != nil {
		return nil, fmt.Errorf("the parameters of %s: %w", action, err)
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(ctx), in})
	if err, failed := results[1].Interface().(error); failed {
		var refusal smithy.APIError
		if errors.As(err, &refusal) {
			return nil, &script.Refusal{Code: refusal.ErrorCode(), Message: refusal.ErrorMessage()}
		}
		return nil, err
	}
	var answer any
	if err := convert(results[0].Interface(), &answer); err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", action, err)
	}
	return answer, nil
}

// convert copies from to to, by way of JSON. Everything in from must have a place in to.
func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(to)
}

// environ returns the environment of the tests, with more.
func environ(more map[string]string) []string {
	all := os.Environ()
	for name, value := range more {
		all = append(all, name+"="+value)
	}
	return all
}

// Command gen writes the packages api/rds, api/sts, api/sns and api/ec2 from the service models
// that botocore ships:
//
//	go run ./api/gen -botocore botocore-1.44.5-py3-none-any.whl
//
// Only facts go into the output (names, types, limits, codes, statuses); the
// models' documentation is never read. The output depends on nothing but the
// models, so a second run changes nothing.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// target says which model becomes which package. Actions names the actions to
// keep; nil keeps all.
type target struct {
	Package string
	Model   string
	Actions []string
}

var targets = []target{
	{Package: "rds", Model: "rds/2014-10-31"},
	{Package: "sts", Model: "sts/2011-06-15", Actions: []string{"GetCallerIdentity"}},
	{Package: "sns", Model: "sns/2010-03-31", Actions: []string{
		"AddPermission", "ConfirmSubscription", "CreateTopic", "DeleteTopic", "GetDataProtectionPolicy", "GetSubscriptionAttributes",
		"GetTopicAttributes", "ListSubscriptions", "ListSubscriptionsByTopic", "ListTagsForResource", "ListTopics", "Publish", "PublishBatch",
		"PutDataProtectionPolicy", "RemovePermission", "SetSubscriptionAttributes", "SetTopicAttributes", "Subscribe", "TagResource",
		"Unsubscribe", "UntagResource",
	}},
	{Package: "ec2", Model: "ec2/2016-11-15", Actions: []string{
		"AuthorizeSecurityGroupIngress", "CreateSecurityGroup", "DeleteSecurityGroup", "DescribeSecurityGroupRules", "DescribeSecurityGroups",
		"DescribeSubnets", "DescribeVpcs", "RevokeSecurityGroupIngress",
	}},
}

func main() {
	log.SetFlags(0)
	source := flag.String("botocore", "", "`path` of a botocore wheel, or of an unpacked one or its data directory")
	out := flag.String("out", "api", "`directory` that holds the generated packages")
	flag.Parse()
	if err := run(*source, *out); err != nil {
		log.Fatal("gen: ", err)
	}
}

func run(source, out string) error {
	data, err := openData(source)
	if err != nil {
		return err
	}
	files, err := generate(data)
	if err != nil {
		return err
	}
	if err := removeStale(out, files); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the text of every file, by its path under the api directory.
func generate(data fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, t := range targets {
		m, err := readModel(data, t.Model)
		if err != nil {
			return nil, err
		}
		if t.Actions != nil {
			m.keep(t.Actions)
		}
		texts, err := render(t.Package, m)
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", t.Package, err)
		}
		for name, text := range texts {
			files[filepath.Join(t.Package, name)] = text
		}
	}
	return files, nil
}

// keep drops all actions but those named.
func (m *model) keep(actions []string) {
	for name := range m.Operations {
		if !slices.Contains(actions, name) {
			delete(m.Operations, name)
		}
	}
}

// removeStale removes generated files that an earlier run wrote and this one does not.
func removeStale(out string, files map[string][]byte) error {
	for _, t := range targets {
		old, err := filepath.Glob(filepath.Join(out, t.Package, "*_gen.go"))
		if err != nil {
			return err
		}
		for _, path := range old {
			name := strings.TrimPrefix(path, filepath.Clean(out)+string(filepath.Separator))
			if _, ok := files[name]; ok {
				continue
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	slashpath "path"
)

// model is the part of a service-2.json that the output needs.
type model struct {
	Metadata struct {
		APIVersion     string `json:"apiVersion"`
		EndpointPrefix string `json:"endpointPrefix"`
		SigningName    string `json:"signingName"`
		XMLNamespace   string `json:"xmlNamespace"`
		Protocol       string `json:"protocol"`
	} `json:"metadata"`
	Operations map[string]operation `json:"operations"`
	Shapes     map[string]shape     `json:"shapes"`
}

type operation struct {
	Name   string     `json:"name"`
	Input  *shapeRef  `json:"input"`
	Output *shapeRef  `json:"output"`
	Errors []shapeRef `json:"errors"`
}

type shapeRef struct {
	Shape         string `json:"shape"`
	ResultWrapper string `json:"resultWrapper"`
	LocationName  string `json:"locationName"`
	QueryName     string `json:"queryName"`
	Flattened     bool   `json:"flattened"`
	XMLAttribute  bool   `json:"xmlAttribute"`
}

type shape struct {
	Type     string    `json:"type"`
	Members  members   `json:"members"`
	Required []string  `json:"required"`
	Member   *shapeRef `json:"member"`
	Key      *shapeRef `json:"key"`
	Value    *shapeRef `json:"value"`
	Enum     []string  `json:"enum"`
	// Min and Max are whole numbers in all shapes that the output needs.
	Min       *json.Number `json:"min"`
	Max       *json.Number `json:"max"`
	Pattern   string       `json:"pattern"`
	Sensitive bool         `json:"sensitive"`
	Flattened bool         `json:"flattened"`
	Exception bool         `json:"exception"`
	Error     struct {
		Code           string `json:"code"`
		HTTPStatusCode int    `json:"httpStatusCode"`
	} `json:"error"`
}

// members keeps the model's order, which is the order of elements in answers.
type members []member

type member struct {
	Name string
	shapeRef
}

func (m *members) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		one := member{Name: name.(string)}
		if err := dec.Decode(&one.shapeRef); err != nil {
			return err
		}
		*m = append(*m, one)
	}
	return nil
}

// ec2 reports whether the service speaks EC2's variant of the query protocol.
func (m *model) ec2() bool { return m.Metadata.Protocol == "ec2" }

// openData returns the data directory inside a botocore wheel, an unpacked
// wheel, or the data directory itself.
func openData(path string) (fs.FS, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	root := os.DirFS(path)
	if !info.IsDir() {
		wheel, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if root, err = zip.NewReader(bytes.NewReader(wheel), int64(len(wheel))); err != nil {
			return nil, fmt.Errorf("open wheel %s: %w", path, err)
		}
	}
	for _, dir := range []string{"botocore/data", "data", "."} {
		if _, err := fs.Stat(root, slashpath.Join(dir, "rds")); err == nil {
			return fs.Sub(root, dir)
		}
	}
	return nil, fmt.Errorf("no botocore data in %s", path)
}

// readModel reads <dir>/service-2.json, packed or not.
func readModel(data fs.FS, dir string) (*model, error) {
	raw, err := fs.ReadFile(data, dir+"/service-2.json.gz")
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = fs.ReadFile(data, dir+"/service-2.json")
	} else if err == nil {
		raw, err = unpack(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("read model %s: %w", dir, err)
	}
	m := new(model)
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("decode model %s: %w", dir, err)
	}
	return m, nil
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

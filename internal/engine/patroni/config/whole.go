package config

import _ "embed"

// Whole is a module that has Patroni replace PostgreSQL's configuration files whole. It
// goes into a directory by the name of patroni.WholeFile, and that directory into PYTHONPATH.
//
//go:embed sitecustomize.py
var Whole []byte

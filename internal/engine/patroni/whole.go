package patroni

import _ "embed"

// Whole is a module that has Patroni replace PostgreSQL's configuration files whole. It
// goes into a directory by the name of WholeFile, and that directory into PYTHONPATH.
//
//go:embed sitecustomize.py
var Whole []byte

// WholeFile is what Python calls a module that it loads before any program; PythonDir is
// its directory below a member's.
const (
	WholeFile = "sitecustomize.py"
	PythonDir = "python"
)

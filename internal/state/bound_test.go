package state

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Every family of keys says how it is bounded. A family that nobody thought of would fill etcd
// after a year.
func TestEveryFamilyIsBounded(t *testing.T) {
	constants := func(file string) []string {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch v := n.(type) {
			case *ast.FuncDecl:
				return false
			case *ast.ValueSpec:
				for _, name := range v.Names {
					if strings.HasSuffix(name.Name, "Root") && name.Name != "Root" {
						names = append(names, name.Name)
					}
				}
			}
			return true
		})
		return names
	}
	families := constants("keys.go")
	if len(families) < 40 {
		t.Fatalf("only %d families were found", len(families))
	}
	text := map[string]bool{}
	parsed, err := parser.ParseFile(token.NewFileSet(), "bound.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if name, ok := pair.Key.(*ast.Ident); ok {
				text[name.Name] = true
			}
		}
		return true
	})
	for _, name := range families {
		if !text[name] {
			t.Errorf("%s has no bound: how long are its keys kept, and who removes them?", name)
		}
	}
}

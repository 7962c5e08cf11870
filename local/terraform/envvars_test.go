package terraform

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// modulePrefix is the import path prefix of this repository's packages. The rest of the path is the
// folder.
const modulePrefix = "melmastoon.ghasi.io/bff-consumer/"

// Folders that connect to Cloud SQL through the connector link connectorPackage. Only folders
// without the connector use directOnlyVariables.
const connectorPackage = "shared/postgres/connector"

var directOnlyVariables = []string{"CLOUDSQL_ADDRESS", "CLOUDSQL_CA"}

// folderEnvVars lists the environment variables that a function folder and its linked packages of
// this repository read: the struct tags for env.ParseAs, and the constant arguments of os.Getenv
// and os.LookupEnv.
func folderEnvVars(root, folder string) (map[string]bool, error) {
	names, seen := map[string]bool{}, map[string]bool{}
	var visit func(dir string) error
	visit = func(dir string) error {
		if seen[dir] {
			return nil
		}
		seen[dir] = true
		p, err := build.ImportDir(filepath.Join(root, dir), 0)
		if err != nil {
			return err
		}
		for _, file := range p.GoFiles {
			if err := fileEnvVars(filepath.Join(root, dir, file), names); err != nil {
				return err
			}
		}
		for _, path := range p.Imports {
			if below, ok := strings.CutPrefix(path, modulePrefix); ok {
				if err := visit(below); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := visit(filepath.Join("functions", folder))
	if seen[connectorPackage] {
		for _, name := range directOnlyVariables {
			delete(names, name)
		}
	}
	return names, err
}

func fileEnvVars(file string, names map[string]bool) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var wrong error
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				text, _ := strconv.Unquote(n.Tag.Value)
				if name, _, _ := strings.Cut(reflect.StructTag(text).Get("env"), ","); name != "" && name != "-" {
					names[name] = true
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && isOS(f.X) && (f.Sel.Name == "Getenv" || f.Sel.Name == "LookupEnv") {
				arg, ok := n.Args[0].(*ast.BasicLit)
				if !ok {
					wrong = fmt.Errorf("%s reads a variable whose name is not written there", file)
					return false
				}
				name, _ := strconv.Unquote(arg.Value)
				names[name] = true
			}
		}
		return true
	})
	return wrong
}

func isOS(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == "os"
}

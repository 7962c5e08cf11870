package terraform

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// logRecords are the possible contents of the log records of some packages.
type logRecords struct {
	fields   map[string]bool // "cache", "httpRequest.status"
	tags     map[string]bool // names in json struct tags, which can be members of a field
	messages map[string]bool // of warnings; a formatted message ends with "…"
	texts    map[string]bool // every constant text, as a possible value of a field
}

func newLogRecords() *logRecords {
	return &logRecords{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

func (w *logRecords) add(more *logRecords) {
	maps.Copy(w.fields, more.fields)
	maps.Copy(w.tags, more.tags)
	maps.Copy(w.messages, more.messages)
	maps.Copy(w.texts, more.texts)
}

// *logRecords by folder, and imported packages of this repository by folder and "imports"
var packageCache sync.Map

// folderLogRecords returns the log records of a function folder and of its linked packages of this
// repository, without tests.
func folderLogRecords(root, folder string) (*logRecords, error) {
	all, seen := newLogRecords(), map[string]bool{}
	var visit func(dir string) error
	visit = func(dir string) error {
		if seen[dir] {
			return nil
		}
		seen[dir] = true
		w, imports, err := packageLogRecords(filepath.Join(root, dir))
		if err != nil {
			return err
		}
		all.add(w)
		for _, path := range imports {
			if below, ok := strings.CutPrefix(path, modulePrefix); ok {
				if err := visit(below); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return all, visit(filepath.Join("functions", folder))
}

type parsedPackage struct {
	*logRecords
	imports []string
}

func packageLogRecords(dir string) (*logRecords, []string, error) {
	if s, ok := packageCache.Load(dir); ok {
		return s.(parsedPackage).logRecords, s.(parsedPackage).imports, nil
	}
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, nil, err
	}
	w := newLogRecords()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		w.readFile(file)
	}
	packageCache.Store(dir, parsedPackage{w, p.Imports})
	return w, p.Imports, nil
}

func (w *logRecords) readFile(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				w.texts[stringLiteral(n)] = true
			}
		case *ast.Field:
			if n.Tag != nil {
				if name, _, _ := strings.Cut(reflect.StructTag(stringLiteral(n.Tag)).Get("json"), ","); name != "" {
					w.tags[name] = true
				}
			}
		case *ast.CallExpr:
			return w.readCall(n)
		}
		return true
	})
}

var levels = []string{"Debug", "Info", "Warn", "Error"}

// readCall reads c.AddLogField("field", …), slog.String("field", …) and slog.WarnContext(ctx,
// "message", "field", …). It reports whether the arguments must be read as well.
func (w *logRecords) readCall(n *ast.CallExpr) bool {
	f, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	level, withContext := strings.CutSuffix(f.Sel.Name, "Context")
	switch {
	case f.Sel.Name == "AddLogField" && len(n.Args) == 2:
		w.fields[stringLiteral(n.Args[0])] = true
	case isSlog(f.X) && (f.Sel.Name == "GroupAttrs" || f.Sel.Name == "Group"):
		below := newLogRecords()
		for _, arg := range n.Args[1:] {
			ast.Inspect(arg, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					return below.readCall(c)
				}
				return true
			})
		}
		for name := range below.fields {
			w.fields[stringLiteral(n.Args[0])+"."+name] = true
		}
		return false
	case isSlog(f.X) && slices.Contains([]string{"String", "Int", "Int64", "Bool", "Float64", "Any"}, f.Sel.Name):
		w.fields[stringLiteral(n.Args[0])] = true
	case isLogger(f.X) && slices.Contains(levels, level):
		args := n.Args
		if withContext {
			args = args[1:]
		}
		w.fields["message"] = true
		if sum, ok := args[0].(*ast.BinaryExpr); ok {
			w.messages[stringLiteral(sum.X)+"…"] = true
		} else {
			w.messages[stringLiteral(args[0])] = true
		}
		for i := 1; i < len(args); i += 2 {
			w.fields[stringLiteral(args[i])] = true
		}
	}
	return true
}

// stringLiteral returns the value of a string literal, or "".
func stringLiteral(n ast.Expr) string {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}

func isSlog(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == "slog"
}

// isLogger reports whether x is package slog or slog.New(…).
func isLogger(x ast.Expr) bool {
	c, ok := x.(*ast.CallExpr)
	if !ok {
		return isSlog(x)
	}
	f, ok := c.Fun.(*ast.SelectorExpr)
	return ok && isSlog(f.X) && f.Sel.Name == "New"
}

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

// logRecords is what can be in the log records of some packages.
type logRecords struct {
	fields   map[string]bool // "cache", "httpRequest.status"
	tags     map[string]bool // names in the json tags of structures: what may be below a field
	messages map[string]bool // of a warning; one that is put together ends with "…"
	texts    map[string]bool // every constant text: what a field may say
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

var packageCache sync.Map // *writes by folder, and what each imports of ours by folder and "imports"

// folderLogRecords reads what a function folder, and everything of ours that it links, writes to the log. Tests are no part of it.
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

// readCall reads c.Note("field", …), slog.String("field", …) and slog.WarnContext(ctx, "message", "field", …). It says whether
// what is inside is to be read as well.
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

// stringLiteral is a constant text, or "".
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

// isLogger says whether x is package slog or slog.New(…).
func isLogger(x ast.Expr) bool {
	c, ok := x.(*ast.CallExpr)
	if !ok {
		return isSlog(x)
	}
	f, ok := c.Fun.(*ast.SelectorExpr)
	return ok && isSlog(f.X) && f.Sel.Name == "New"
}

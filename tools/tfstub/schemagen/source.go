package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// source is the source of one provider.
type source struct {
	root string
	made map[string]maker // by type: "google_pubsub_topic"
}

// maker is the expression that makes a type's *schema.Resource, and the package it stands in.
type maker struct {
	expr ast.Expr
	in   *pkg
}

// pkg is what one directory declares, by name.
type pkg struct {
	values map[string]ast.Expr
	funcs  map[string]*ast.FuncDecl
	others map[string]*pkg // packages of the provider, by name
}

// read parses every directory that registers types: newer providers say `registry.Schema{Name: …, Schema: ResourceX()}`,
// older ones have a file resource_x.go with a function resourceX.
func (s *source) read() error {
	s.made = map[string]maker{}
	dirs, names := map[string]*pkg{}, map[string]*pkg{}
	return filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir := filepath.Dir(path)
		old := filepath.Base(dir) == "google-beta"
		if !old && !strings.Contains(dir, "/services/") && filepath.Base(dir) != "tpgresource" {
			return nil
		}
		if old && !strings.Contains(path, "api_gateway") && !strings.Contains(path, "network_endpoint_group") {
			return nil // the rest is as in the newer provider
		}
		if dirs[dir] == nil {
			dirs[dir] = &pkg{map[string]ast.Expr{}, map[string]*ast.FuncDecl{}, names}
			names[filepath.Base(dir)] = dirs[dir]
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dirs[dir].add(parsed)
		s.find(parsed, dirs[dir])
		if name, ok := strings.CutPrefix(strings.TrimSuffix(filepath.Base(path), ".go"), "resource_"); old && ok {
			s.made["google_"+name] = maker{&ast.CallExpr{Fun: ast.NewIdent("resource" + camel(name))}, dirs[dir]}
		}
		return nil
	})
}

func (p *pkg) add(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				p.funcs[d.Name.Name] = d
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for i, name := range v.Names {
						if i < len(v.Values) {
							p.values[name.Name] = v.Values[i]
						}
					}
				}
			}
		}
	}
}

// find keeps the registrations of a file; a type's data source and lists are registered by the same name.
func (s *source) find(f *ast.File, in *pkg) {
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		fields := fieldsOf(lit)
		name, ok := fields["Name"].(*ast.BasicLit)
		kind, isKind := fields["Type"].(*ast.SelectorExpr)
		if !ok || !isKind || fields["Schema"] == nil || strings.Contains(kind.Sel.Name, "DataSource") {
			return true
		}
		text, _ := strconv.Unquote(name.Value)
		s.made[text] = maker{fields["Schema"], in}
		return true
	})
}

func camel(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func fieldsOf(lit *ast.CompositeLit) map[string]ast.Expr {
	fields := map[string]ast.Expr{}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				fields[key.Name] = kv.Value
			}
		}
	}
	return fields
}

// literal follows variables, calls and & to the composite literal that is meant.
func (p *pkg) literal(e ast.Expr) (*ast.CompositeLit, error) {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return e, nil
	case *ast.UnaryExpr:
		return p.literal(e.X)
	case *ast.Ident:
		if v := p.values[e.Name]; v != nil {
			return p.literal(v)
		}
		return nil, fmt.Errorf("%s is not declared beside it", e.Name)
	case *ast.CallExpr:
		in, name := p, ""
		switch f := e.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			if x, ok := f.X.(*ast.Ident); ok && p.others[x.Name] != nil {
				in, name = p.others[x.Name], f.Sel.Name
			}
		}
		if in.funcs[name] == nil {
			return nil, fmt.Errorf("a call of %v, which is not found", e.Fun)
		}
		return in.returned(in.funcs[name])
	}
	return nil, fmt.Errorf("cannot read %T", e)
}

// returned is the literal that a function returns, directly or by a variable of its own.
func (p *pkg) returned(f *ast.FuncDecl) (*ast.CompositeLit, error) {
	locals := &pkg{map[string]ast.Expr{}, p.funcs, p.others}
	for k, v := range p.values {
		locals.values[k] = v
	}
	var found ast.Expr
	for _, s := range f.Body.List {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if name, ok := s.Lhs[0].(*ast.Ident); ok {
				locals.values[name.Name] = s.Rhs[0]
			}
		case *ast.ReturnStmt:
			found = s.Results[0]
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s returns nothing", f.Name.Name)
	}
	return locals.literal(found)
}

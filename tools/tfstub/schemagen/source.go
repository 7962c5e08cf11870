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

// providerSource is the source of one provider.
type providerSource struct {
	root         string
	constructors map[string]constructor // by type: "google_pubsub_topic"
}

// constructor is the expression that creates the *schema.Resource of a type, and its package.
type constructor struct {
	expr ast.Expr
	pkg  *pkg
}

// pkg has the declarations of one directory, by name.
type pkg struct {
	values   map[string]ast.Expr
	funcs    map[string]*ast.FuncDecl
	packages map[string]*pkg // the provider's packages, by name
}

// parseAll parses every directory that registers types. Newer providers register
// `registry.Schema{Name: …, Schema: ResourceX()}`; older ones have a file resource_x.go with a
// function resourceX.
func (s *providerSource) parseAll() error {
	s.constructors = map[string]constructor{}
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
			return nil // the other directories have the layout of newer providers
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
		s.addRegistrations(parsed, dirs[dir])
		if name, ok := strings.CutPrefix(strings.TrimSuffix(filepath.Base(path), ".go"), "resource_"); old && ok {
			s.constructors["google_"+name] = constructor{&ast.CallExpr{Fun: ast.NewIdent("resource" + camelCase(name))}, dirs[dir]}
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

// addRegistrations records the resources that a file registers. Data sources and lists have the
// same names and are ignored.
func (s *providerSource) addRegistrations(f *ast.File, in *pkg) {
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
		s.constructors[text] = constructor{fields["Schema"], in}
		return true
	})
}

func camelCase(name string) string {
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

// resolveLiteral follows variables, calls and & to a composite literal.
func (p *pkg) resolveLiteral(e ast.Expr) (*ast.CompositeLit, error) {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return e, nil
	case *ast.UnaryExpr:
		return p.resolveLiteral(e.X)
	case *ast.Ident:
		if v := p.values[e.Name]; v != nil {
			return p.resolveLiteral(v)
		}
		return nil, fmt.Errorf("%s is not declared beside it", e.Name)
	case *ast.CallExpr:
		in, name := p, ""
		switch f := e.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			if x, ok := f.X.(*ast.Ident); ok && p.packages[x.Name] != nil {
				in, name = p.packages[x.Name], f.Sel.Name
			}
		}
		if in.funcs[name] == nil {
			return nil, fmt.Errorf("a call of %v, which is not found", e.Fun)
		}
		return in.returnedLiteral(in.funcs[name])
	}
	return nil, fmt.Errorf("cannot read %T", e)
}

// returnedLiteral returns the composite literal that a function returns, directly or through a
// local variable.
func (p *pkg) returnedLiteral(f *ast.FuncDecl) (*ast.CompositeLit, error) {
	locals := &pkg{map[string]ast.Expr{}, p.funcs, p.packages}
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
	return locals.resolveLiteral(found)
}

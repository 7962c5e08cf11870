package main

import (
	"fmt"
	"go/ast"
	"maps"
	"strconv"
)

// resource is the block of a type, as the SDK of providers tells it to Terraform.
func (s *source) resource(typ string) (*block, error) {
	m, ok := s.made[typ]
	if !ok {
		return nil, fmt.Errorf("no such type in %s", s.root)
	}
	if parent := m.in.granted(m.expr); parent != nil {
		return m.in.member(parent)
	}
	lit, err := m.in.literal(m.expr)
	if err != nil {
		return nil, err
	}
	b, err := m.in.resource(lit)
	if err != nil {
		return nil, err
	}
	if b.Attributes["id"].Type == nil {
		b.Attributes["id"] = attribute{Type: "string", Optional: true, Computed: true}
	}
	if timeouts := fieldsOf(lit)["Timeouts"]; timeouts != nil {
		if lit, err := m.in.literal(timeouts); err == nil {
			b.Blocks["timeouts"] = nested{Block: times(lit), Mode: "single"}
		}
	}
	return b, nil
}

func times(lit *ast.CompositeLit) *block {
	names := map[string]string{"Create": "create", "Read": "read", "Update": "update", "Delete": "delete", "Default": "default"}
	b := words()
	for field := range fieldsOf(lit) {
		if names[field] != "" {
			b.Attributes[names[field]] = attribute{Type: "string", Optional: true}
		}
	}
	return b
}

// granted is what a call of ResourceIamMember, or of a function that returns one, grants a role on; nil: it is neither.
func (p *pkg) granted(e ast.Expr) ast.Expr {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return nil
	}
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		if f.Sel.Name == "ResourceIamMember" {
			return call.Args[0]
		}
	case *ast.Ident:
		if decl := p.funcs[f.Name]; decl != nil && len(decl.Body.List) == 1 {
			if r, ok := decl.Body.List[0].(*ast.ReturnStmt); ok {
				return p.granted(r.Results[0])
			}
		}
	}
	return nil
}

// member is a grant of one role to one account on what parent says; the package of grants adds the rest.
func (p *pkg) member(parent ast.Expr) (*block, error) {
	lit, err := p.literal(parent)
	if err != nil {
		return nil, err
	}
	b, err := p.fields(lit)
	if err != nil {
		return nil, err
	}
	condition := words("description")
	condition.Attributes["title"] = attribute{Type: "string", Required: true}
	condition.Attributes["expression"] = attribute{Type: "string", Required: true}
	maps.Copy(b.Attributes, map[string]attribute{
		"role": {Type: "string", Required: true}, "member": {Type: "string", Required: true},
		"etag": {Type: "string", Computed: true}, "id": {Type: "string", Optional: true, Computed: true},
	})
	b.Blocks["condition"] = nested{Block: condition, Mode: "list", MaxItems: 1}
	return b, nil
}

func (p *pkg) resource(lit *ast.CompositeLit) (*block, error) {
	fields, err := p.literal(fieldsOf(lit)["Schema"])
	if err != nil {
		return nil, err
	}
	return p.fields(fields)
}

// fields reads a map[string]*schema.Schema.
func (p *pkg) fields(lit *ast.CompositeLit) (*block, error) {
	b := &block{map[string]attribute{}, map[string]nested{}}
	for _, e := range lit.Elts {
		kv := e.(*ast.KeyValueExpr)
		key, ok := kv.Key.(*ast.BasicLit)
		if !ok {
			return nil, fmt.Errorf("the name of a field is %T", kv.Key)
		}
		name, _ := strconv.Unquote(key.Value)
		field, err := p.literal(kv.Value)
		if err == nil {
			err = p.field(b, name, fieldsOf(field))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b, nil
}

func (p *pkg) field(b *block, name string, f map[string]ast.Expr) error {
	elem, isResource, err := p.elem(f["Elem"])
	if err != nil {
		return err
	}
	kind := selected(f["Type"])
	mode := selected(f["ConfigMode"])
	onlyComputed := yes(f["Computed"]) && !yes(f["Optional"])
	if isResource && kind != "TypeMap" && mode != "SchemaConfigModeAttr" && (mode == "SchemaConfigModeBlock" || !onlyComputed) {
		n := nested{Mode: map[string]string{"TypeList": "list", "TypeSet": "set"}[kind], MinItems: number(f["MinItems"]), MaxItems: number(f["MaxItems"])}
		if n.Block, err = p.resource(elem); err != nil {
			return err
		}
		switch {
		case yes(f["Required"]) && n.MinItems == 0:
			n.MinItems = 1
		case yes(f["Optional"]):
			n.MinItems = 0
		}
		b.Blocks[name] = n
		return nil
	}
	typ, err := p.typ(kind, elem, isResource)
	b.Attributes[name] = attribute{
		Type: typ, Required: yes(f["Required"]), Optional: yes(f["Optional"]), Computed: yes(f["Computed"]),
		Sensitive: yes(f["Sensitive"]), WriteOnly: yes(f["WriteOnly"]),
	}
	return err
}

// elem is what a list, set or map holds.
func (p *pkg) elem(e ast.Expr) (_ *ast.CompositeLit, isResource bool, _ error) {
	if e == nil {
		return nil, false, nil
	}
	lit, err := p.literal(e)
	if err != nil {
		return nil, false, err
	}
	return lit, selected(lit.Type) == "Resource", nil
}

// typ is a type in the notation of Terraform: "string", ["list", "string"], ["set", ["object", {…}]].
func (p *pkg) typ(kind string, elem *ast.CompositeLit, isResource bool) (any, error) {
	switch kind {
	case "TypeString":
		return "string", nil
	case "TypeBool":
		return "bool", nil
	case "TypeInt", "TypeFloat":
		return "number", nil
	}
	outer := map[string]string{"TypeList": "list", "TypeSet": "set", "TypeMap": "map"}[kind]
	switch {
	case outer == "":
		return nil, fmt.Errorf("unknown type %q", kind)
	case elem == nil || outer == "map" && isResource:
		return []any{outer, "string"}, nil
	case isResource:
		b, err := p.resource(elem)
		return []any{outer, object(b)}, err
	}
	f := fieldsOf(elem)
	inner, innerIsResource, err := p.elem(f["Elem"])
	if err != nil {
		return nil, err
	}
	t, err := p.typ(selected(f["Type"]), inner, innerIsResource)
	return []any{outer, t}, err
}

func object(b *block) any {
	if b == nil {
		return nil
	}
	types := map[string]any{}
	for name, a := range b.Attributes {
		types[name] = a.Type
	}
	for name, n := range b.Blocks {
		types[name] = []any{n.Mode, object(n.Block)}
	}
	return []any{"object", types}
}

func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

func yes(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "true"
}

func number(e ast.Expr) int {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(lit.Value)
	return n
}

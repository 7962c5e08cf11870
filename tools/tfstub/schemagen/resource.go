package main

import (
	"fmt"
	"go/ast"
	"maps"
	"strconv"
)

// resource returns the block of a type, as the provider SDK describes it to Terraform.
func (s *providerSource) resource(typ string) (*block, error) {
	m, ok := s.constructors[typ]
	if !ok {
		return nil, fmt.Errorf("no such type in %s", s.root)
	}
	if parent := m.pkg.iamParent(m.expr); parent != nil {
		return m.pkg.iamMemberBlock(parent)
	}
	lit, err := m.pkg.resolveLiteral(m.expr)
	if err != nil {
		return nil, err
	}
	b, err := m.pkg.resource(lit)
	if err != nil {
		return nil, err
	}
	if b.Attributes["id"].Type == nil {
		b.Attributes["id"] = attribute{Type: "string", Optional: true, Computed: true}
	}
	if timeouts := fieldsOf(lit)["Timeouts"]; timeouts != nil {
		if lit, err := m.pkg.resolveLiteral(timeouts); err == nil {
			b.Blocks["timeouts"] = nested{Block: timeoutsBlock(lit), Mode: "single"}
		}
	}
	return b, nil
}

func timeoutsBlock(lit *ast.CompositeLit) *block {
	names := map[string]string{"Create": "create", "Read": "read", "Update": "update", "Delete": "delete", "Default": "default"}
	b := optionalStrings()
	for field := range fieldsOf(lit) {
		if names[field] != "" {
			b.Attributes[names[field]] = attribute{Type: "string", Optional: true}
		}
	}
	return b
}

// iamParent returns the schema of the parent resource in a call of ResourceIamMember, or of a
// function that returns such a call. It returns nil for other expressions.
func (p *pkg) iamParent(e ast.Expr) ast.Expr {
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
				return p.iamParent(r.Results[0])
			}
		}
	}
	return nil
}

// iamMemberBlock returns the block of an IAM member resource: the parent's fields and those that
// the provider's IAM package adds.
func (p *pkg) iamMemberBlock(parent ast.Expr) (*block, error) {
	lit, err := p.resolveLiteral(parent)
	if err != nil {
		return nil, err
	}
	b, err := p.fieldsBlock(lit)
	if err != nil {
		return nil, err
	}
	condition := optionalStrings("description")
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
	fields, err := p.resolveLiteral(fieldsOf(lit)["Schema"])
	if err != nil {
		return nil, err
	}
	return p.fieldsBlock(fields)
}

// fieldsBlock reads a literal of type map[string]*schema.Schema.
func (p *pkg) fieldsBlock(lit *ast.CompositeLit) (*block, error) {
	b := &block{map[string]attribute{}, map[string]nested{}}
	for _, e := range lit.Elts {
		kv := e.(*ast.KeyValueExpr)
		key, ok := kv.Key.(*ast.BasicLit)
		if !ok {
			return nil, fmt.Errorf("the name of a field is %T", kv.Key)
		}
		name, _ := strconv.Unquote(key.Value)
		field, err := p.resolveLiteral(kv.Value)
		if err == nil {
			err = p.addField(b, name, fieldsOf(field))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b, nil
}

func (p *pkg) addField(b *block, name string, f map[string]ast.Expr) error {
	elem, isResource, err := p.elem(f["Elem"])
	if err != nil {
		return err
	}
	kind := selectorName(f["Type"])
	mode := selectorName(f["ConfigMode"])
	onlyComputed := isTrue(f["Computed"]) && !isTrue(f["Optional"])
	if isResource && kind != "TypeMap" && mode != "SchemaConfigModeAttr" && (mode == "SchemaConfigModeBlock" || !onlyComputed) {
		n := nested{Mode: map[string]string{"TypeList": "list", "TypeSet": "set"}[kind], MinItems: intLiteral(f["MinItems"]), MaxItems: intLiteral(f["MaxItems"])}
		if n.Block, err = p.resource(elem); err != nil {
			return err
		}
		switch {
		case isTrue(f["Required"]) && n.MinItems == 0:
			n.MinItems = 1
		case isTrue(f["Optional"]):
			n.MinItems = 0
		}
		b.Blocks[name] = n
		return nil
	}
	typ, err := p.attributeType(kind, elem, isResource)
	b.Attributes[name] = attribute{
		Type: typ, Required: isTrue(f["Required"]), Optional: isTrue(f["Optional"]), Computed: isTrue(f["Computed"]),
		Sensitive: isTrue(f["Sensitive"]), WriteOnly: isTrue(f["WriteOnly"]),
	}
	return err
}

// elem returns the literal of the element type of a list, set or map.
func (p *pkg) elem(e ast.Expr) (_ *ast.CompositeLit, isResource bool, _ error) {
	if e == nil {
		return nil, false, nil
	}
	lit, err := p.resolveLiteral(e)
	if err != nil {
		return nil, false, err
	}
	return lit, selectorName(lit.Type) == "Resource", nil
}

// attributeType returns a type in Terraform's notation: "string", ["list", "string"], ["set",
// ["object", {…}]].
func (p *pkg) attributeType(kind string, elem *ast.CompositeLit, isResource bool) (any, error) {
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
		return []any{outer, objectType(b)}, err
	}
	f := fieldsOf(elem)
	inner, innerIsResource, err := p.elem(f["Elem"])
	if err != nil {
		return nil, err
	}
	t, err := p.attributeType(selectorName(f["Type"]), inner, innerIsResource)
	return []any{outer, t}, err
}

func objectType(b *block) any {
	if b == nil {
		return nil
	}
	types := map[string]any{}
	for name, a := range b.Attributes {
		types[name] = a.Type
	}
	for name, n := range b.Blocks {
		types[name] = []any{n.Mode, objectType(n.Block)}
	}
	return []any{"object", types}
}

func selectorName(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

func isTrue(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "true"
}

func intLiteral(e ast.Expr) int {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(lit.Value)
	return n
}

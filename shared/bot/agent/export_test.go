package agent

// Known reports whether a classification can have a name: of a list entry, a keyword or a rule.
func Known(name string) bool {
	l := loadedRules()
	for _, ns := range []*literalSet{&l.listed, &l.keywords, &l.automations} {
		for _, n := range ns.all {
			if n.name == name {
				return true
			}
		}
	}
	switch name {
	case "", "empty", "contact", "not-a-browser", "before-mozilla", "only-compatible", "no-platform":
		return true
	}
	return false
}

package agent

// Known says whether a name can be that of a judgement: an entry of the list, one of our words, or a rule's.
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

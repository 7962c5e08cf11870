package cache

// Dependency is an entry that went into a composite entry, for Loaded.DependsOn. A composite entry is
// only as new as its oldest part: Tag t of the composite is out of date if t was invalidated after the
// cache began to load any part that carries t, even if the composite itself was begun later. GetOrLoad
// then answers with the composite entry but does not store it.
//
// A Dependency covers the part's own load, not the parts that the part was made of. The zero value
// forbids nothing. Safe for concurrent use: a Dependency is an immutable value.
type Dependency struct {
	tags      []string
	startedAt int64 // server time when the load of the part began, µs; 0: unknown
}

// Dependency describes e as a part of a composite entry. tags are the tags that e carries; e itself does
// not know them. Pure.
func (e *Entry) Dependency(tags ...string) Dependency { return Dependency{tags, e.startedAt} }

// oldestByTag returns for each tag the server time, in µs, when the load of the oldest part began.
func oldestByTag(parts []Dependency) map[string]int64 {
	oldest := map[string]int64{}
	for _, p := range parts {
		for _, tag := range p.tags {
			if startedAt, known := oldest[tag]; !known || p.startedAt < startedAt {
				oldest[tag] = p.startedAt
			}
		}
	}
	return oldest
}

package cache

// Dependency is a cache entry that went into another, composite entry. A composite entry is only as
// new as its oldest part: if a tag of a part was invalidated after the load of the part began, the
// composite entry may be out of date, even if its own load began after the invalidation. GetOrLoad
// then returns the composite entry but does not store it.
//
// A Dependency covers the load of the part itself, not the parts of the part. The zero value has no
// effect. A Dependency is immutable and safe for concurrent use.
type Dependency struct {
	tags      []string
	startedAt int64 // server time when the load of the part began, µs; 0: unknown
}

// Dependency returns e as a part of a composite entry, for Loaded.DependsOn. tags are the tags of
// e, which e does not store; the result keeps the slice. Only tags that are also in Loaded.Tags
// have an effect. If e was loaded without Redis, the time of its load is unknown: then any
// invalidation of a tag within the last minute prevents storing. It does no I/O and never fails.
func (e *Entry) Dependency(tags ...string) Dependency { return Dependency{tags, e.startedAt} }

// oldestByTag returns for each tag when the load of the oldest part with this tag began, in µs of
// server time.
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

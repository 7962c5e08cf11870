// Package keyspace owns the way to Redis: how it is opened, how it fails and what its keys are called; it never
// reads or writes a value.
package redisclient

import "strings"

// Keys names every key of one environment, "prod" or "local". The zero value is not usable.
type Keys struct{ Env string }

// Key joins its parts: Key("cache", "facets", "AF") is "prod:bff-consumer:cache:facets:AF". Braces in a part are kept
// and make a hash tag, so a part that is not ours to choose goes through Part first.
func (k Keys) Key(parts ...string) string {
	const service = ":bff-consumer"
	size := len(k.Env) + len(service)
	for _, part := range parts {
		size += len(":") + len(part)
	}
	var b strings.Builder
	b.Grow(size) // every command has a key: it is made in one piece
	b.WriteString(k.Env)
	b.WriteString(service)
	for _, part := range parts {
		b.WriteByte(':')
		b.WriteString(part)
	}
	return b.String()
}

// Session names the hash of a session. The braces are literal: all keys of one session share a cluster slot.
func (k Keys) Session(id string) string { return k.Key("session", "{"+id+"}") }

// SessionPart names what lies beside that hash: the lists "wishlist", "recent" and "history", what was shown to a
// "challenge", and the mark of a "cleared" session.
func (k Keys) SessionPart(id, part string) string { return k.Key("session", "{"+id+"}", part) }

// LastSeen names one of the sorted sets of sessions by when they were last seen, Unix ms; silent ones, whose end is not
// told, have their own. A lane is the last character of the session's id: one set of all would be one shard of a
// cluster that every guest writes to. The braces keep both sets of a lane in one slot.
func (k Keys) LastSeen(lane string, silent bool) string {
	if silent {
		return k.Key("session", "seen", "{"+lane+"}", "silent")
	}
	return k.Key("session", "seen", "{"+lane+"}")
}

// Penalty names the count of what a client of that fingerprint, sha256:<hex>, was caught at of late. It raises the
// score of every request of the fingerprint until it expires.
func (k Keys) Penalty(fingerprint string) string {
	return k.Key("bot", "penalty", EscapePart(fingerprint))
}

// Bucket names what is left of a client's requests: of a class of routes, by cookie, address or fingerprint. who is an id
// of ours or a hash.
func (k Keys) Bucket(class, kind, who string) string {
	return k.Key("rl", "{"+class+":"+kind+":"+who+"}")
}

// Cadence names the list of when a client group made its last requests. A group is ours to name: hex. The braces keep all
// that is remembered of a group's cadence in one slot.
func (k Keys) Cadence(group string) string { return k.Key("bot", "cadence", "{"+group+"}") }

// CadencePart names what stands beside it: "cookie", or "own" and the mark of a session.
func (k Keys) CadencePart(group string, part ...string) string {
	return k.Cadence(group) + ":" + strings.Join(part, ":")
}

// GroupSessions names the sorted set of marks of the sessions that began at a client group, by when, Unix ms; in the
// slot of the group's cadence.
func (k Keys) GroupSessions(group string) string { return k.Key("bot", "sessions", "{"+group+"}") }

// Lock names the single-flight lock of a cache entry. Its hash tag is the whole entry key, so both share a slot and one
// script may touch both; the entry key itself must hold no brace.
func (k Keys) Lock(cacheKey string) string { return k.Key("lock", "{"+cacheKey+"}") }

// Tag names the set of entries that carry a tag, and Tag's Busted and Busting what its invalidation leaves there.
func (k Keys) Tag(tag string) string { return k.Key("tag", "{"+EscapePart(tag)+"}") }

// TagInvalidatedAt names the time of the last invalidation of a tag.
func (k Keys) TagInvalidatedAt(tag string) string { return k.Tag(tag) + ":busted" }

// TagPending names the entries of a tag whose removal has begun.
func (k Keys) TagPending(tag string) string { return k.Tag(tag) + ":busting" }

const hexDigits = "0123456789ABCDEF"

// EscapePart makes any text fit to be one part of a key: the bytes that mean something there (colon, braces, percent, space
// and control characters) become %XX. Text without them, letters of every script included, is returned as it is.
func EscapePart(s string) string {
	if strings.IndexFunc(s, needsEscape) < 0 {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; needsEscape(rune(c)) {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func needsEscape(r rune) bool {
	return r <= ' ' || r == 0x7f || r == ':' || r == '{' || r == '}' || r == '%'
}

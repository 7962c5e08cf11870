// Package redisclient opens the Redis client with time limits, a circuit breaker and pipeline
// batching, and names all keys. It never reads or writes a value.
package redisclient

import "strings"

// Keys names all keys of an environment, "prod" or "local". The methods are pure, never fail, check
// no argument and do no I/O. Only Penalty, Tag and the two keys beside Tag escape the argument; the
// other methods take ids, hashes and keys as they are, without braces. The zero value is not
// usable: its keys have no environment. The examples are keys of Keys{"prod"}.
type Keys struct{ Env string }

// Key returns a key of the parts: Key("cache", "facets", "AF") is
// "prod:bff-consumer:cache:facets:AF". Braces in a part form a hash tag, so pass foreign text
// through EscapePart first.
func (k Keys) Key(parts ...string) string {
	const service = ":bff-consumer"
	size := len(k.Env) + len(service)
	for _, part := range parts {
		size += len(":") + len(part)
	}
	var b strings.Builder
	b.Grow(size) // every command has a key: allocate once
	b.WriteString(k.Env)
	b.WriteString(service)
	for _, part := range parts {
		b.WriteByte(':')
		b.WriteString(part)
	}
	return b.String()
}

// Session names the hash of a session, "prod:bff-consumer:session:{gms_…}". The braces are literal:
// the hash and the SessionPart keys of a session share a cluster slot, other keys of the session do
// not.
func (k Keys) Session(id string) string { return k.Key("session", "{"+id+"}") }

// SessionPart names a key beside the session hash, "prod:bff-consumer:session:{gms_…}:wishlist":
// the lists "wishlist", "recent" and "history", the proof of a passed "challenge", and the marker
// of a "cleared" session.
func (k Keys) SessionPart(id, part string) string { return k.Key("session", "{"+id+"}", part) }

// LastSeen names a sorted set of sessions by the time of the last request, Unix ms:
// "prod:bff-consumer:session:seen:{7}", with ":silent" at the end if silent. Sessions without an
// end event are in separate, silent sets. shard is the last character of the session id: a single
// set would send the writes of every guest to a single cluster node. The braces keep both sets of a
// shard in a slot, which is not the slot of a session.
func (k Keys) LastSeen(shard string, silent bool) string {
	if silent {
		return k.Key("session", "seen", "{"+shard+"}", "silent")
	}
	return k.Key("session", "seen", "{"+shard+"}")
}

// Penalty names the counter of recent offences of clients with a fingerprint, sha256:<hex>:
// "prod:bff-consumer:bot:penalty:sha256%3A<hex>". The counter raises the bot score of every request
// with the fingerprint until the key expires.
func (k Keys) Penalty(fingerprint string) string {
	return k.Key("bot", "penalty", EscapePart(fingerprint))
}

// Bucket names the token bucket of a client for a class of routes,
// "prod:bff-consumer:rl:{read:cookie:gms_…}". kind is cookie, address or fingerprint; client is an
// id issued by this service or a hash. The buckets of a client are in different slots.
func (k Keys) Bucket(class, kind, client string) string {
	return k.Key("rl", "{"+class+":"+kind+":"+client+"}")
}

// Cadence names the list of the times of a client group's last requests,
// "prod:bff-consumer:bot:cadence:{<group>}". group is hex. The braces keep all cadence keys of a
// group in a slot.
func (k Keys) Cadence(group string) string { return k.Key("bot", "cadence", "{"+group+"}") }

// CadencePart names a key beside Cadence, "prod:bff-consumer:bot:cadence:{<group>}:own:<hash>":
// part is "cookie", or "own" and the hash of a session.
func (k Keys) CadencePart(group string, part ...string) string {
	return k.Cadence(group) + ":" + strings.Join(part, ":")
}

// GroupSessions names the sorted set of the session hashes of a client group, by start time, Unix
// ms: "prod:bff-consumer:bot:sessions:{<group>}". The key is in the slot of the group's cadence.
func (k Keys) GroupSessions(group string) string { return k.Key("bot", "sessions", "{"+group+"}") }

// Lock names the single-flight lock of a cache entry, "prod:bff-consumer:lock:{<cacheKey>}". The
// hash tag is the whole entry key, so a script may use both keys; the entry key must not contain
// braces.
func (k Keys) Lock(cacheKey string) string { return k.Key("lock", "{"+cacheKey+"}") }

// Tag names the sorted set of the cache entries with a tag, by expiry:
// "prod:bff-consumer:tag:{tenant%3A<id>}". TagInvalidatedAt and TagPending are in the same slot;
// the entries are not.
func (k Keys) Tag(tag string) string { return k.Key("tag", "{"+EscapePart(tag)+"}") }

// TagInvalidatedAt names the time of the last invalidation of a tag: the key of Tag and ":busted".
func (k Keys) TagInvalidatedAt(tag string) string { return k.Tag(tag) + ":busted" }

// TagPending names the sorted set of the entries that an invalidation of a tag has detached and not
// yet deleted: the key of Tag and ":busting".
func (k Keys) TagPending(tag string) string { return k.Tag(tag) + ":busting" }

const hexDigits = "0123456789ABCDEF"

// EscapePart makes any text usable as a part of a key: the bytes with a meaning in a key (colon,
// braces, percent, space and control characters) become %XX. All other bytes, letters of every
// script and invalid UTF-8 included, are unchanged. Different texts give different parts; an empty
// text stays empty. The length is not limited. Pure; it never fails.
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

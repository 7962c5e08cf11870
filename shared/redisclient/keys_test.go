package redisclient

import (
	"strings"
	"testing"
)

func TestKeys_MatchDataModel(t *testing.T) {
	t.Parallel()
	k := Keys{Env: "prod"}
	for _, c := range []struct{ got, want string }{
		{k.Key("cache", "search", "list", "ab12"), "prod:bff-consumer:cache:search:list:ab12"},
		{k.Key("tenant-suspended"), "prod:bff-consumer:tenant-suspended"},
		{k.Session("gms_1"), "prod:bff-consumer:session:{gms_1}"},
		{k.SessionPart("gms_1", "history"), "prod:bff-consumer:session:{gms_1}:history"},
		{k.Penalty("sha256:ab"), "prod:bff-consumer:bot:penalty:sha256%3Aab"},
		{k.Cadence("ab"), "prod:bff-consumer:bot:cadence:{ab}"},
		{k.CadencePart("ab", "own", "cd"), "prod:bff-consumer:bot:cadence:{ab}:own:cd"},
		{k.GroupSessions("ab"), "prod:bff-consumer:bot:sessions:{ab}"},
		{k.Lock("prod:bff-consumer:cache:facets:AF"), "prod:bff-consumer:lock:{prod:bff-consumer:cache:facets:AF}"},
		{k.Tag("tenant:tnt_1"), "prod:bff-consumer:tag:{tenant%3Atnt_1}"},
		{k.TagInvalidatedAt("t"), "prod:bff-consumer:tag:{t}:busted"},
		{k.TagPending("t"), "prod:bff-consumer:tag:{t}:busting"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestKeys_ScriptKeysShareSlot(t *testing.T) {
	t.Parallel()
	k := Keys{Env: "prod"}
	entry := k.Key("cache", "facets", EscapePart("{AF}"), EscapePart("کابل:1"))
	for _, group := range [][]string{
		{entry, k.Lock(entry)},
		{k.Tag("a}b"), k.TagInvalidatedAt("a}b"), k.TagPending("a}b")},
		{k.Session("gms_1"), k.SessionPart("gms_1", "recent")},
		{k.Cadence("ab"), k.CadencePart("ab", "cookie"), k.CadencePart("ab", "own", "cd"), k.GroupSessions("ab")},
	} {
		for _, key := range group[1:] {
			if hashTag(key) != hashTag(group[0]) {
				t.Errorf("keys %s and %s are in different slots", group[0], key)
			}
		}
	}
}

// hashTag returns the part of a key that a cluster hashes: the text in the first braces, or the
// whole key.
func hashTag(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

func TestEscapePart_CannotLeaveItsPosition(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Medina":   "Medina",
		"المدينة":  "المدينة",
		"a:b":      "a%3Ab",
		"{x} y\n%": "%7Bx%7D%20y%0A%25",
		"":         "",
	} {
		t.Run(in, func(t *testing.T) {
			if got := EscapePart(in); got != want {
				t.Errorf("EscapePart(%q): got %q, want %q", in, got, want)
			}
		})
	}
}

package session

import (
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/mileusna/useragent"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
)

// agentFamily is a parsed user agent. Versions are missing: browsers update themselves, and a guest
// keeps the session through an update.
type agentFamily struct {
	browser, system, deviceClass string
	bindings                     []string // for Session.bindingHash, per pepper, newest first
}

const (
	maxUserAgentBytes = 512   // the rest of a user agent is ignored
	maxCachedAgents   = 4_096 // per instance; parsing costs tens of microseconds
)

// agentParser parses and caches user agents. Safe for concurrent use.
type agentParser struct {
	peppers keyring.Ring
	cache   *lru.Cache[string, agentFamily]
}

func newAgentParser(peppers keyring.Ring) agentParser {
	known, err := lru.New[string, agentFamily](maxCachedAgents)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return agentParser{peppers, known}
}

// parse returns the family of a user agent. Only the first 512 bytes count.
func (a agentParser) parse(userAgent string) agentFamily {
	userAgent = userAgent[:min(len(userAgent), maxUserAgentBytes)]
	if found, ok := a.cache.Get(userAgent); ok {
		return found
	}
	userAgent = strings.Clone(userAgent) // the cache must not pin the rest of a long header
	parsed := useragent.Parse(userAgent)
	found := agentFamily{browser: parsed.Name, system: parsed.OS, deviceClass: deviceClass(parsed)}
	for _, pepper := range a.peppers {
		found.bindings = append(found.bindings, digest.Format(pepper.Sum("binding.v1", []byte(found.browser), []byte(found.system))))
	}
	a.cache.Add(userAgent, found)
	return found
}

// deviceClass returns the Client.UserAgentClass of a user agent. Native apps are not detected yet,
// so no client is "app".
func deviceClass(ua useragent.UserAgent) string {
	switch {
	case ua.Bot:
		return "bot"
	case ua.Tablet:
		return "browser-tablet"
	case ua.Mobile:
		return "browser-mobile"
	case ua.Desktop:
		return "browser-desktop"
	default:
		return "other"
	}
}

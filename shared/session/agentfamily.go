package session

import (
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/mileusna/useragent"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
)

// agentFamily is what a user agent string is reduced to. Versions are left out: browsers update themselves,
// and an update must not cost a guest the session.
type agentFamily struct {
	browser, system, deviceClass string
	bindings                     []string // what a session given to it is bound to, one for each pepper, newest first
}

const (
	maxUserAgentBytes = 512   // bytes of a user agent that are looked at
	maxCachedAgents   = 4_096 // parsed families kept per instance; parsing costs tens of microseconds
)

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

func (a agentParser) parse(userAgent string) agentFamily {
	userAgent = userAgent[:min(len(userAgent), maxUserAgentBytes)]
	if found, ok := a.cache.Get(userAgent); ok {
		return found
	}
	userAgent = strings.Clone(userAgent) // what is kept must not keep the rest of a long one
	parsed := useragent.Parse(userAgent)
	found := agentFamily{browser: parsed.Name, system: parsed.OS, deviceClass: deviceClass(parsed)}
	for _, pepper := range a.peppers {
		found.bindings = append(found.bindings, digest.Format(pepper.Sum("binding.v1", []byte(found.browser), []byte(found.system))))
	}
	a.cache.Add(userAgent, found)
	return found
}

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

package session

import (
	"encoding/hex"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/mileusna/useragent"
)

// agent is what a user agent string is reduced to. Versions are left out: browsers update themselves,
// and an update must not cost a guest the session.
type agent struct{ browser, system, class string }

const (
	maxAgent    = 512   // bytes of a user agent that are looked at
	knownAgents = 4_096 // parsed families kept per instance; parsing costs tens of microseconds
)

type agents struct{ known *lru.Cache[string, agent] }

func newAgents() agents {
	known, err := lru.New[string, agent](knownAgents)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return agents{known}
}

func (a agents) family(userAgent string) agent {
	userAgent = userAgent[:min(len(userAgent), maxAgent)]
	if found, ok := a.known.Get(userAgent); ok {
		return found
	}
	parsed := useragent.Parse(userAgent)
	found := agent{browser: parsed.Name, system: parsed.OS, class: class(parsed)}
	a.known.Add(userAgent, found)
	return found
}

func class(ua useragent.UserAgent) string {
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

func hash(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

package session

import (
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/mileusna/useragent"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
)

// agent is what a user agent string is reduced to. Versions are left out: browsers update themselves,
// and an update must not cost a guest the session.
type agent struct {
	browser, system, class string
	bindings               []string // what a session given to it is bound to, one for each pepper, newest first
}

const (
	maxAgent    = 512   // bytes of a user agent that are looked at
	knownAgents = 4_096 // parsed families kept per instance; parsing costs tens of microseconds
)

type agents struct {
	peppers keyring.Ring
	known   *lru.Cache[string, agent]
}

func newAgents(peppers keyring.Ring) agents {
	known, err := lru.New[string, agent](knownAgents)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return agents{peppers, known}
}

func (a agents) family(userAgent string) agent {
	userAgent = userAgent[:min(len(userAgent), maxAgent)]
	if found, ok := a.known.Get(userAgent); ok {
		return found
	}
	userAgent = strings.Clone(userAgent) // what is kept must not keep the rest of a long one
	parsed := useragent.Parse(userAgent)
	found := agent{browser: parsed.Name, system: parsed.OS, class: class(parsed)}
	for _, pepper := range a.peppers {
		found.bindings = append(found.bindings, digest.Text(pepper.Sum("binding.v1", []byte(found.browser), []byte(found.system))))
	}
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

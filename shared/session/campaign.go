package session

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// Campaign attributes the session to a marketing campaign, from the X-Campaign headers. The last
// campaign counts.
type Campaign struct {
	Source     string    `json:"source,omitempty"`
	Medium     string    `json:"medium,omitempty"`
	Campaign   string    `json:"campaign,omitempty"`
	CapturedAt time.Time `json:"capturedAt"`
}

// parseCampaign reads the X-Campaign headers, or returns nil. It drops values other than plain
// tokens: events publish campaigns and must not contain an address or a sentence.
func parseCampaign(h http.Header, now time.Time) *Campaign {
	token := func(name string) string {
		// The first match compiles the pattern, so an absent header skips it.
		if s := h.Get(name); s != "" && event.IsCampaignToken(s) {
			return s
		}
		return ""
	}
	c := Campaign{Source: token("X-Campaign-Source"), Medium: token("X-Campaign-Medium"), Campaign: token("X-Campaign-Name")}
	if c == (Campaign{}) {
		return nil
	}
	c.CapturedAt = now
	return &c
}

// equal compares campaigns apart from CapturedAt.
func (c *Campaign) equal(other *Campaign) bool {
	return other != nil && c.Source == other.Source && c.Medium == other.Medium && c.Campaign == other.Campaign
}

// json returns the campaign as the hash stores it.
func (c *Campaign) json() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // unreachable: tokens and a time
	}
	return string(b)
}

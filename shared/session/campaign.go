package session

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// Campaign is what brought the guest here, from the X-Campaign headers.
type Campaign struct {
	Source     string    `json:"source,omitempty"`
	Medium     string    `json:"medium,omitempty"`
	Campaign   string    `json:"campaign,omitempty"`
	CapturedAt time.Time `json:"capturedAt"`
}

// parseCampaign reads the attribution headers. A value that is not a plain token is dropped: what is kept
// goes out in events, and an address or a sentence must not.
func parseCampaign(h http.Header, now time.Time) *Campaign {
	token := func(name string) string {
		if s := h.Get(name); s != "" && event.IsCampaignToken(s) { // the pattern is not compiled for nothing
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

func (c *Campaign) equal(other *Campaign) bool {
	return other != nil && c.Source == other.Source && c.Medium == other.Medium && c.Campaign == other.Campaign
}

func (c *Campaign) json() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // unreachable: strings and a time
	}
	return string(b)
}

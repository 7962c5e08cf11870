package handoff

import (
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// request is the body of POST /handoff.
type request struct {
	TenantID       string         `json:"tenantId"`
	PropertyID     string         `json:"propertyId"`
	Dates          stay.Dates     `json:"dates"`
	Occupancy      stay.Occupancy `json:"occupancy"`
	Currency       *string        `json:"currency,omitzero"`       // unset: the session's
	Locale         *string        `json:"locale,omitzero"`         // unset: the session's
	SourceCampaign *campaign      `json:"sourceCampaign,omitzero"` // unset: the session's
}

// campaign is what brought the guest, as the client knows it.
type campaign struct {
	Source     string     `json:"source,omitzero"`
	Medium     string     `json:"medium,omitzero"`
	Campaign   string     `json:"campaign,omitzero"`
	CapturedAt *time.Time `json:"capturedAt,omitzero"`
}

const maxCampaignAge = 365 * 24 * time.Hour

// check writes codes as the platform spells them and says what is wrong with the request: the error, whenever it is
// asked; overnight, for a guest who asks only now, because the day of arrival is past.
func (r *request) check(now time.Time) (overnight []problem.FieldError, err error) {
	var wrong []problem.FieldError
	add := func(field, code, detail string) {
		wrong = append(wrong, problem.FieldError{Field: field, Code: code, Detail: detail})
	}
	switch {
	case r.TenantID == "":
		add("tenantId", "required", "Say whose hotel it is.")
	case !id.Valid(id.Tenant, r.TenantID):
		add("tenantId", "malformed", "Must be the id of a tenant, tnt_….")
	}
	switch {
	case r.PropertyID == "":
		add("propertyId", "required", "Say which hotel.")
	case !id.Valid(id.Property, r.PropertyID):
		add("propertyId", "malformed", "Must be the id of a property, ppt_….")
	}
	wrong = append(wrong, r.Dates.Validate(now)...)
	wrong = append(wrong, r.Occupancy.Validate()...)
	if r.SourceCampaign != nil {
		wrong = append(wrong, r.SourceCampaign.check(now)...)
	}
	if slices.ContainsFunc(wrong, func(f problem.FieldError) bool { return f.Code != "past" }) {
		return nil, problem.Invalid(wrong...)
	}
	if r.Currency != nil {
		currency, err := web.ParseCurrency("currency", *r.Currency)
		if err != nil {
			return nil, err
		}
		r.Currency = (*string)(&currency)
	}
	if r.Locale != nil {
		tag, err := web.ParseLocale("locale", *r.Locale)
		if err != nil {
			return nil, err
		}
		r.Locale = (*string)(&tag)
	}
	return wrong, nil
}

// check says what is wrong with a campaign, and writes its time as it is kept: UTC, whole milliseconds.
func (c *campaign) check(now time.Time) (wrong []problem.FieldError) {
	add := func(field, code, detail string) {
		wrong = append(wrong, problem.FieldError{Field: "sourceCampaign." + field, Code: code, Detail: detail})
	}
	for _, token := range []struct{ field, value string }{
		{"source", c.Source}, {"medium", c.Medium}, {"campaign", c.Campaign},
	} {
		if token.value != "" && !event.IsCampaignToken(token.value) {
			add(token.field, "malformed", "Must be a token of letters, digits, dots, hyphens and underscores, at most 64.")
		}
	}
	if c.CapturedAt != nil {
		if age := now.Sub(*c.CapturedAt); age < -time.Hour || age > maxCampaignAge { // a guest's clock may be ahead
			add("capturedAt", "out-of-range", "Must be at most a year ago.")
		}
		*c.CapturedAt = c.CapturedAt.UTC().Truncate(time.Millisecond)
	}
	return wrong
}

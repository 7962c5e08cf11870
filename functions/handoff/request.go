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

// campaign is the marketing campaign that brought the guest, as the client reports it.
type campaign struct {
	Source     string     `json:"source,omitzero"`
	Medium     string     `json:"medium,omitzero"`
	Campaign   string     `json:"campaign,omitzero"`
	CapturedAt *time.Time `json:"capturedAt,omitzero"`
}

const maxCampaignAge = 365 * 24 * time.Hour

// check validates the request at the time now and rewrites currency and locale in the platform's
// spelling. past holds the faults of dates that are past; the request is valid on an earlier day.
// err is a problem with all faults, for a request that is valid on no day.
func (r *request) check(now time.Time) (past []problem.FieldError, err error) {
	var faults []problem.FieldError
	add := func(field, code, detail string) {
		faults = append(faults, problem.FieldError{Field: field, Code: code, Detail: detail})
	}
	switch {
	case r.TenantID == "":
		add("tenantId", "required", "A tenant id is required.")
	case !id.Valid(id.Tenant, r.TenantID):
		add("tenantId", "malformed", "Must be the id of a tenant, tnt_….")
	}
	switch {
	case r.PropertyID == "":
		add("propertyId", "required", "A property id is required.")
	case !id.Valid(id.Property, r.PropertyID):
		add("propertyId", "malformed", "Must be the id of a property, ppt_….")
	}
	faults = append(faults, r.Dates.Validate(now)...)
	faults = append(faults, r.Occupancy.Validate()...)
	if r.SourceCampaign != nil {
		faults = append(faults, r.SourceCampaign.check(now)...)
	}
	if slices.ContainsFunc(faults, func(f problem.FieldError) bool { return f.Code != "past" }) {
		return nil, problem.Invalid(faults...)
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
	return faults, nil
}

// check returns the faults of a campaign and rewrites its time in the stored form: UTC, whole
// milliseconds.
func (c *campaign) check(now time.Time) (faults []problem.FieldError) {
	add := func(field, code, detail string) {
		faults = append(faults, problem.FieldError{Field: "sourceCampaign." + field, Code: code, Detail: detail})
	}
	for _, token := range []struct{ field, value string }{
		{"source", c.Source}, {"medium", c.Medium}, {"campaign", c.Campaign},
	} {
		if token.value != "" && !event.IsCampaignToken(token.value) {
			add(token.field, "malformed", "Must be a token of letters, digits, dots, hyphens and underscores, at most 64.")
		}
	}
	if c.CapturedAt != nil {
		// the guest's clock may be up to an hour ahead
		if age := now.Sub(*c.CapturedAt); age < -time.Hour || age > maxCampaignAge {
			add("capturedAt", "out-of-range", "Must be at most a year ago.")
		}
		*c.CapturedAt = c.CapturedAt.UTC().Truncate(time.Millisecond)
	}
	return faults
}

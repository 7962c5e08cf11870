// Package handoff signs and verifies the token that takes a guest to a tenant's booking page, and
// defines its bytes. It uses no network and no store: a receiver needs only the keys and this
// package. Package ledger records which tokens were used.
package handoff

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// TTL is the exact life of every token. Verification rejects any other life.
const TTL = 30 * time.Minute

// Handoff is the content of a token. All fields are signed.
type Handoff struct {
	ID             string // bhd_<ulid>
	GuestSessionID string // gms_<ulid>
	TenantID       string // tnt_<ulid>
	PropertyID     string // ppt_<ulid>
	Dates          stay.Dates
	Adults         int
	Children       int
	Rooms          int
	Currency       string    // ISO 4217, "AFN"
	Locale         string    // BCP-47, "ps-AF"
	MintedAt       time.Time // UTC, whole milliseconds
	ExpiresAt      time.Time // MintedAt plus TTL
	KeyID          string    // hmac-YYYY-MM
}

const (
	version        = "v1"
	canonicalLines = 15
)

// The forms of codes. The minting service checks that a code exists. A receiver checks the form
// only, so that a receiver deployed before a language was added accepts it.
var (
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
	localePattern   = regexp.MustCompile(`^[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?$`)
)

// canonical returns the signing string of docs/spec/routes.md#handoff-token: the version and one
// field per line, with LF between lines and no LF at the end.
func (h *Handoff) canonical() []byte {
	b := make([]byte, 0, 256)
	b = append(b, version...)
	line := func(s string) {
		b = append(b, '\n')
		b = append(b, s...)
	}
	line(h.ID)
	line(h.GuestSessionID)
	line(h.TenantID)
	line(h.PropertyID)
	line(h.Dates.CheckIn.String())
	line(h.Dates.CheckOut.String())
	line(strconv.Itoa(h.Adults))
	line(strconv.Itoa(h.Children))
	line(strconv.Itoa(h.Rooms))
	line(h.Currency)
	line(h.Locale)
	line(timestamp.Format(h.MintedAt))
	line(timestamp.Format(h.ExpiresAt))
	line(h.KeyID)
	return b
}

// parseCanonical is the inverse of canonical. It accepts a text only if canonical writes the same
// text for a valid handoff. Its errors never repeat the text.
func parseCanonical(text string) (Handoff, error) {
	f := strings.Split(text, "\n")
	if len(f) != canonicalLines || f[0] != version {
		return Handoff{}, errors.New("not version 1")
	}
	h := Handoff{
		ID: f[1], GuestSessionID: f[2], TenantID: f[3], PropertyID: f[4], Currency: f[10], Locale: f[11], KeyID: f[14],
	}
	var errs [7]error
	h.Dates.CheckIn, errs[0] = stay.ParseDate(f[5])
	h.Dates.CheckOut, errs[1] = stay.ParseDate(f[6])
	h.Adults, errs[2] = strconv.Atoi(f[7])
	h.Children, errs[3] = strconv.Atoi(f[8])
	h.Rooms, errs[4] = strconv.Atoi(f[9])
	h.MintedAt, errs[5] = time.Parse(timestamp.Layout, f[12])
	h.ExpiresAt, errs[6] = time.Parse(timestamp.Layout, f[13])
	for _, err := range errs {
		if err != nil {
			return Handoff{}, errors.New("invalid field") // err has the value, which must not get into a log
		}
	}
	if err := h.validate(); err != nil {
		return Handoff{}, err
	}
	if string(h.canonical()) != text { // for example "+2" adults, or a comma before the milliseconds
		return Handoff{}, errors.New("not canonical")
	}
	return h, nil
}

// validate returns an error for the first invalid field. No valid field contains a control
// character, so no value can pass for two lines. The error names the field, never the value.
func (h *Handoff) validate() error {
	occupancy := stay.Occupancy{Adults: h.Adults, Children: h.Children, Rooms: h.Rooms}
	nights := h.Dates.Nights()
	for _, c := range []struct {
		field string
		ok    bool
	}{
		{"id", id.Valid(id.Handoff, h.ID)},
		{"guestSessionId", id.Valid(id.Session, h.GuestSessionID)},
		{"tenantId", id.Valid(id.Tenant, h.TenantID)},
		{"propertyId", id.Valid(id.Property, h.PropertyID)},
		{"dates", validDate(h.Dates.CheckIn) && validDate(h.Dates.CheckOut) && nights >= 1 && nights <= stay.MaxNights},
		{"occupancy", len(occupancy.Validate()) == 0},
		{"currency", currencyPattern.MatchString(h.Currency)},
		{"locale", localePattern.MatchString(h.Locale)},
		{"mintedAt", validTime(h.MintedAt)},
		{"expiresAt", validTime(h.ExpiresAt) && h.ExpiresAt.Sub(h.MintedAt) == TTL},
		{"hmacKeyId", validKeyID(h.KeyID)},
	} {
		if !c.ok {
			return fmt.Errorf("invalid %s", c.field)
		}
	}
	return nil
}

// validDate reports whether a date exists in the calendar and has a year of four digits.
func validDate(d stay.Date) bool {
	parsed, err := stay.ParseDate(d.String())
	return err == nil && parsed == d
}

// validTime reports whether a time has whole milliseconds and a year from 2000 to 9999.
func validTime(t time.Time) bool {
	return t.Year() >= 2000 && t.Year() <= 9999 && t.Equal(t.Truncate(time.Millisecond))
}

// validKeyID reports whether a key id has the form hmac-YYYY-MM.
func validKeyID(s string) bool {
	month, ok := strings.CutPrefix(s, "hmac-")
	if !ok {
		return false
	}
	t, err := time.Parse("2006-01", month)
	return err == nil && t.Format("2006-01") == month
}

package adminapi

import (
	"net/http"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// syntheticFields are the members of a property that no source contains. Package dataset derives
// them from the row's id; they describe no real hotel.
var syntheticFields = []string{
	"tenant", "brand colour", "logo", "price", "availability", "guestRating", "badges", "cancellation", "photos",
	"rooms by type", "servingRegion", "popularity",
}

// dataset responds with the size of the data set and the number of rows that contain each member.
func (c *Handler) dataset(w http.ResponseWriter, _ *http.Request) error {
	answer := struct {
		dataset.Report
		Properties  int            `json:"properties"`
		Tenants     int            `json:"tenants"`
		Cities      int            `json:"cities"`
		Countries   map[string]int `json:"countries"` // properties by country
		Given       map[string]int `json:"given"`     // number of rows by member
		Synthetic   []string       `json:"synthetic"` // members that are always derived
		Attribution string         `json:"attribution,omitzero"`
	}{
		Report:     c.parts.Data.Report,
		Properties: len(c.parts.Data.Properties), Tenants: len(c.parts.Data.Tenants), Cities: len(c.parts.Data.Cities),
		Countries: map[string]int{}, Given: map[string]int{}, Synthetic: syntheticFields,
		Attribution: Attribution(c.parts.Data),
	}
	for _, country := range c.parts.Data.Countries {
		answer.Countries[country.Code] = len(country.Properties)
	}
	for _, p := range c.parts.Data.Properties {
		for _, member := range p.Row.Given {
			answer.Given[member]++
		}
	}
	return web.WriteJSON(w, http.StatusOK, answer)
}

// propertySource responds with the source row of a property and the names of the derived members.
func (c *Handler) propertySource(w http.ResponseWriter, r *http.Request) error {
	p := c.parts.Data.Property(r.PathValue("id"))
	if p == nil {
		return problem.New(problem.ResourceNotFound, "The data set has no such property.", nil)
	}
	given := p.Row.Given
	if given == nil {
		given = []string{}
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		PropertyID string    `json:"propertyId"`
		SourceID   string    `json:"sourceId"`
		Source     string    `json:"source,omitzero"`
		Name       string    `json:"name"`
		Kind       string    `json:"kind"`
		Geo        geo.Point `json:"geo"`
		City       string    `json:"city"`
		Country    string    `json:"country"`
		Stars      int       `json:"stars"`
		Given      []string  `json:"given"` // members from the source; all others are derived
		Synthetic  []string  `json:"synthetic"`
	}{p.ID, p.Row.ID, p.Row.Source, p.Row.Name, p.Row.Kind, p.Row.Point, p.CityName, p.Country, p.Stars, given, syntheticFields})
}

// Attribution returns the notice that the licence of OpenStreetMap requires, or "" for a data set
// without rows of OpenStreetMap.
func Attribution(data *dataset.Dataset) string {
	for _, p := range data.Properties {
		for _, mark := range []string{"node/", "way/", "relation/"} {
			if strings.HasPrefix(p.Row.ID, mark) {
				return "© OpenStreetMap contributors, ODbL 1.0"
			}
		}
		if strings.HasPrefix(p.Row.Source, "osm") {
			return "© OpenStreetMap contributors, ODbL 1.0"
		}
	}
	return ""
}

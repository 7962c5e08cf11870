package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const (
	readyTimeout  = 20 * time.Second
	probeInterval = 50 * time.Millisecond
)

// probe repeats a search through the gateway every 50 ms until the response is 200. After 20 s it
// returns the error of the last search.
func probe(ctx context.Context, url string, data *dataset.Dataset) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := searchOnce(ctx, url, data)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server: no search succeeds: %w", err)
		case <-time.After(probeInterval):
		}
	}
}

// searchOnce searches the city with the most properties. The header DNT prevents a telemetry event.
// The error holds the first 4 KiB of a response other than 200.
func searchOnce(ctx context.Context, url string, data *dataset.Dataset) error {
	arrival := stay.DateOf(time.Now().UTC()).AddDays(30)
	body, err := json.Marshal(map[string]any{
		"geo":       largestPlace(data),
		"dates":     stay.Dates{CheckIn: arrival, CheckOut: arrival.AddDays(2)},
		"occupancy": stay.Occupancy{Adults: 2, Rooms: 1},
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+web.BasePath+"/search", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept-Language", "en")
	req.Header.Set("DNT", "1")
	// The bot detector would classify the user agent of Go's client as a tool.
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	return err
}

// largestPlace returns the geo part of a search: the city with the most properties, else a country.
func largestPlace(data *dataset.Dataset) map[string]string {
	var best *dataset.City
	for _, c := range data.Cities {
		if best == nil || len(c.Properties) > len(best.Properties) {
			best = c
		}
	}
	if best == nil {
		return map[string]string{"mode": "region", "region": data.Countries[0].Code}
	}
	return map[string]string{"mode": "city", "city": best.Name}
}

package servertest

import (
	"encoding/base64"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Call sends a request as a browser does and returns the response and its body, a JSON object; an
// empty body gives nil. headers are names and values in turns and replace the defaults (a Firefox
// user agent, JSON, Accept-Language ar). A response of the public API is validated against its
// OpenAPI document.
func Call(t *testing.T, method, url, body string, headers ...string) (*http.Response, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	req.Header.Set("Accept-Language", "ar")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(req.URL.Path, web.BasePath+"/") {
		document := filepath.Join(Root(t), "api", "consumer.openapi.yaml")
		functest.ValidateResponse(t, document, req, &functest.Result{Response: res, Text: string(text)})
	}
	var answer map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatalf("%s %s: %v: %s", method, url, err, text)
		}
	}
	return res, answer
}

// SearchBody returns the body of a search for two adults in a city, two nights from 20 days ahead.
func SearchBody(city string) string {
	arrival := time.Now().AddDate(0, 0, 20)
	return `{"geo":{"mode":"city","city":"` + city + `"},"dates":{"checkIn":"` + arrival.Format(time.DateOnly) + `","checkOut":"` +
		arrival.AddDate(0, 0, 2).Format(time.DateOnly) + `"},"occupancy":{"adults":2,"children":0,"rooms":1}}`
}

// PushBody wraps data as Pub/Sub does when it pushes a message.
func PushBody(data string) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(data))
	return `{"message":{"data":"` + encoded + `","messageId":"1"},"subscription":"projects/p/subscriptions/s"}`
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

// browser is a user agent that the bot detector classifies as human.
const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

const (
	api   = "/bff/consumer/v1"
	local = "/_local"
)

// answer is a complete response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// shown limits how much of a request body is printed.
const shown = 160

// send prints a request and sends it as the current guest. headers are name, value, name, value, …;
// a body is sent as JSON.
func (t *tour) send(method, path string, body any, headers ...string) (*answer, error) {
	text, err := encode(body)
	if err != nil {
		return nil, err
	}
	line := method + " " + path
	for i := 0; i+1 < len(headers); i += 2 {
		line += fmt.Sprintf(" -H '%s: %s'", headers[i], short(headers[i+1], 60))
	}
	if !t.quiet {
		fmt.Fprintln(t.out, strings.TrimRight("   "+line+" "+short(string(text), shown), " "))
	}
	return t.do(t.ctx, method, path, text, headers...)
}

func encode(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	return json.Marshal(body, json.Deterministic(true))
}

// do sends a request without printing it.
func (t *tour) do(ctx context.Context, method, path string, body []byte, headers ...string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", browser)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if t.cookie != "" {
		req.Header.Set("Cookie", t.cookie)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := t.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	a := &answer{status: res.StatusCode, header: res.Header}
	// The cookie is Secure, so a cookie jar would not send it over http.
	if cookies := res.Cookies(); len(cookies) > 0 && cookies[0].MaxAge > 0 {
		t.cookie = cookies[0].Name + "=" + cookies[0].Value
	}
	a.body, err = io.ReadAll(res.Body)
	return a, err
}

// decode decodes the body of a response.
func decode[T any](a *answer) (v T, err error) {
	if err := json.Unmarshal(a.body, &v); err != nil {
		return v, fmt.Errorf("the body is not as described: %w", err)
	}
	return v, nil
}

// code returns the last part of a problem's code, or "" when the response is not a problem.
func (a *answer) code() string {
	p, err := decode[struct {
		Code string `json:"code"`
	}](a)
	if err != nil {
		return ""
	}
	return p.Code[strings.LastIndexByte(p.Code, '.')+1:]
}

// says returns the status and the code of a response.
func (a *answer) says() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.status, a.code()))
}

// want returns an error unless the response has this status and, if code is not empty, this code.
func (a *answer) want(status int, code string) error {
	if a.status != status || code != "" && a.code() != code {
		return fmt.Errorf("the answer is %s: %s", a.says(), short(string(a.body), 300))
	}
	return nil
}

// get sends a GET of a path under /_local/ without printing it.
func (t *tour) get(path string, into any) error {
	a, err := t.do(t.ctx, http.MethodGet, local+path, nil)
	if err == nil {
		err = a.want(http.StatusOK, "")
	}
	if err == nil {
		err = json.Unmarshal(a.body, into)
	}
	if err != nil {
		return fmt.Errorf("GET %s%s: %w", local, path, err)
	}
	return nil
}

func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

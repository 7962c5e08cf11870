package control

import (
	"io"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// decode is web.Decode for a body of any media type: these routes are called by hand.
func decode(r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, web.MaxBody))
	if err != nil {
		return problem.New(problem.MalformedRequest, "The body could not be read, or is larger than 64 KiB.", err)
	}
	return web.Parse(body, into)
}

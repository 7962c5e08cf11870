package adminapi

import (
	"errors"
	"io"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// decode is web.Decode without the check of the media type, because developers call these routes
// with curl. It returns a problem for a body above 64 KiB, an incomplete body or JSON that does not
// fit.
func decode(r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, web.MaxBody))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return problem.New(problem.PayloadTooLarge, "The body must be at most 64 KiB.", err)
	}
	if err != nil {
		return problem.New(problem.MalformedRequest, "The body could not be read.", err)
	}
	return web.DecodeBytes(body, into)
}

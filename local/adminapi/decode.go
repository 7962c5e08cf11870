package adminapi

import (
	"errors"
	"io"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// decode is web.Decode for a body of any media type: these routes are called by hand.
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

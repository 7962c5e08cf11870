package adminapi

import (
	"net/http"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// upstreams responds with the counters of all upstreams, by name.
func (c *Handler) upstreams(w http.ResponseWriter, _ *http.Request) error {
	all := map[string]sandbox.Counters{}
	for name, u := range c.parts.Sandbox.Upstreams {
		all[name] = u.Counters()
	}
	return web.WriteJSON(w, http.StatusOK, all)
}

// findUpstream returns the upstream of the path, or a not-found problem.
func (c *Handler) findUpstream(r *http.Request) (*sandbox.Upstream, error) {
	u := c.parts.Sandbox.Upstreams[r.PathValue("name")]
	if u == nil {
		return nil, problem.New(problem.ResourceNotFound, "The upstreams are "+strings.Join(sandbox.UpstreamNames, ", ")+".", nil)
	}
	return u, nil
}

func (c *Handler) upstream(w http.ResponseWriter, r *http.Request) error {
	u, err := c.findUpstream(r)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, u.Counters())
}

// setBehaviour replaces the behaviour of an upstream. Members absent from the body return to normal
// behaviour. The counters continue.
func (c *Handler) setBehaviour(w http.ResponseWriter, r *http.Request) error {
	u, err := c.findUpstream(r)
	if err != nil {
		return err
	}
	var b sandbox.Behaviour
	if err := decode(r, &b); err != nil {
		return err
	}
	if wrong := b.Validate(); wrong != nil {
		return problem.Invalid(wrong...)
	}
	u.SetBehaviour(b)
	return web.WriteJSON(w, http.StatusOK, u.Counters())
}

// reset restores normal behaviour of an upstream and sets its counters to 0.
func (c *Handler) reset(w http.ResponseWriter, r *http.Request) error {
	u, err := c.findUpstream(r)
	if err != nil {
		return err
	}
	u.Reset()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *Handler) resetAll(w http.ResponseWriter, _ *http.Request) error {
	for _, u := range c.parts.Sandbox.Upstreams {
		u.Reset()
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

package adminapi

import "net/http"

// bootstrap consumes a handoff as a tenant's BFF does. It passes the response of the internal
// endpoint through, rejections included.
func (c *Handler) bootstrap(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Token string `json:"token"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	answer, err := c.parts.Tenant.Bootstrap(r.Context(), in.Token)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", answer.ContentType)
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // the client may be gone
	return nil
}

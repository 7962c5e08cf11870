package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
)

const maxBody = 256 << 10

// apiError is the error of a request that breaks the service's contract.
type apiError struct {
	status int
	detail string
}

func (r apiError) Error() string { return fmt.Sprintf("%d: %s", r.status, r.detail) }

func badRequest(format string, args ...any) error {
	return apiError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

var notFound = apiError{http.StatusNotFound, "Not found."}

// route registers a function that returns the response body or an error. An apiError sets the
// status; other errors respond 500.
func route(mux *http.ServeMux, pattern string, respond func(r *http.Request) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		value, err := respond(r)
		var apiErr apiError
		switch {
		case errors.As(err, &apiErr):
			writeProblem(w, apiErr.status, apiErr.detail)
		case err != nil:
			writeProblem(w, http.StatusInternalServerError, err.Error())
		default:
			writeJSON(w, http.StatusOK, "application/json", value)
		}
	})
}

// newMux returns a mux that responds to unknown routes with a 404 in JSON, as the contracts
// require.
func newMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusNotFound, "No such route.")
	})
	return mux
}

// readJSON decodes a body of at most 256 KiB and rejects members that the contract does not have.
func readJSON(r *http.Request, into any) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return badRequest("the body is incomplete")
	}
	if len(body) > maxBody {
		return apiError{http.StatusRequestEntityTooLarge, "The body is too large."}
	}
	if err := json.Unmarshal(body, into, json.RejectUnknownMembers(true)); err != nil {
		return badRequest("the body breaks the contract: %v", err)
	}
	return nil
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	writeJSON(w, status, "application/problem+json", struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(status), status, detail})
}

func writeJSON(w http.ResponseWriter, status int, media string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		// unreachable: all response types can be encoded
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	w.Write(text)
}

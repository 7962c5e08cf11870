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

// apiError is what a service says to a request that is against its contract.
type apiError struct {
	status int
	detail string
}

func (r apiError) Error() string { return fmt.Sprintf("%d: %s", r.status, r.detail) }

func badRequest(format string, args ...any) error {
	return apiError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

var notFound = apiError{http.StatusNotFound, "There is none."}

// route makes a handler of a function that answers with a value or an error.
func route(mux *http.ServeMux, pattern string, answer func(r *http.Request) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		value, err := answer(r)
		var refused apiError
		switch {
		case errors.As(err, &refused):
			writeProblem(w, refused.status, refused.detail)
		case err != nil:
			writeProblem(w, http.StatusInternalServerError, err.Error())
		default:
			writeJSON(w, http.StatusOK, "application/json", value)
		}
	})
}

// newMux refuses what no route takes in JSON, as the contracts want a 404.
func newMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusNotFound, "No such route.")
	})
	return mux
}

// readJSON decodes a body strictly: a member that the contract does not have is a mistake of the caller.
func readJSON(r *http.Request, into any) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return badRequest("the body broke off")
	}
	if len(body) > maxBody {
		return apiError{http.StatusRequestEntityTooLarge, "The body is too large."}
	}
	if err := json.Unmarshal(body, into, json.RejectUnknownMembers(true)); err != nil {
		return badRequest("against the contract: %v", err)
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
		http.Error(w, err.Error(), http.StatusInternalServerError) // unreachable: our own types encode
		return
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	w.Write(text)
}

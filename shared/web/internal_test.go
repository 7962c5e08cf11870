package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestNewInternal_HasOwnBudgetAndBodyLimit(t *testing.T) {
	t.Parallel()
	var left time.Duration
	var kept []byte
	var whole bool
	f := NewInternal("Relay", "POST /internal/jobs/relay", time.Minute, opened(func(w http.ResponseWriter, r *http.Request) (err error) {
		deadline, _ := r.Context().Deadline()
		left = time.Until(deadline)
		kept, whole, err = ReadPrefix(r, 100)
		return err
	}))
	if err := f.OpenWithLog(t.Context(), new(logBuffer)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size, kept int
		whole      bool
	}{{0, 0, true}, {100, 100, true}, {101, 100, false}, {MaxBody + 1, 100, false}, {MaxPushBody + 1, 100, false}} {
		body := bytes.NewReader(bytes.Repeat([]byte("x"), c.size))
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest("POST", "/internal/jobs/relay", io.NopCloser(body)))
		if w.Code != 200 || len(kept) != c.kept || whole != c.whole {
			t.Errorf("%d bytes: status %d, %d bytes kept, whole %v; want 200, %d, %v", c.size, w.Code, len(kept), whole, c.kept, c.whole)
		}
		if c.size <= MaxPushBody && body.Len() > 0 {
			t.Errorf("%d bytes: %d left unread, want 0: the client may not get the response", c.size, body.Len())
		}
	}
	if left < 50*time.Second {
		t.Errorf("%v left of the minute, want more than 50s", left)
	}
}

func TestNewInternal_PanicsWithoutBudget(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("NewInternal returned, want a panic")
		}
	}()
	NewInternal("None", "POST /x", 0, nil)
}

func TestReadPrefix_TruncatedBodyIsAnError(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("POST", "/x", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if body, whole, err := ReadPrefix(r, 100); !errors.Is(err, io.ErrUnexpectedEOF) || body != nil || whole {
		t.Errorf("ReadPrefix: %q, %v, %v", body, whole, err)
	}
	r = httptest.NewRequest("POST", "/x", nil)
	if body, whole, err := ReadPrefix(r, 100); err != nil || len(body) != 0 || !whole {
		t.Errorf("ReadPrefix: %q, %v, %v", body, whole, err)
	}
}

func TestCallMarkAlert_LogsErrorForSuccessfulResponse(t *testing.T) {
	t.Parallel()
	f, l := newLoggedFunction(t, "POST /x", func(w http.ResponseWriter, r *http.Request) error {
		FromContext(r.Context()).MarkAlert("inbox-conflict")
		return okHandler(w, r)
	})
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("POST", "/x", nil))
	if record := l.only(t); w.Code != 200 || record["severity"] != "ERROR" || record["alarm"] != "inbox-conflict" {
		t.Errorf("status %d, record %v; want 200 and severity ERROR with the alarm", w.Code, record)
	}
}

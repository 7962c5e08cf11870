package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestAPrivateDoorHasItsOwnTimeAndRoom(t *testing.T) {
	saved := registry
	registry = map[string]*Function{}
	defer func() { registry = saved }()
	var left time.Duration
	var kept []byte
	var whole bool
	door := OpenWithin("Relay", "POST /internal/jobs/relay", time.Minute, func(context.Context) (Handler, error) {
		return func(w http.ResponseWriter, r *http.Request) (err error) {
			deadline, _ := r.Context().Deadline()
			left = time.Until(deadline)
			kept, whole, err = Read(r, 100)
			return err
		}, nil
	})
	if err := registry["Relay"].OpenTo(t.Context(), new(log)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size, kept int
		whole      bool
	}{{0, 0, true}, {100, 100, true}, {101, 100, false}, {MaxBody + 1, 100, false}, {MaxPush + 1, 100, false}} {
		body := bytes.NewReader(bytes.Repeat([]byte("x"), c.size))
		w := httptest.NewRecorder()
		door(w, httptest.NewRequest("POST", "/internal/jobs/relay", io.NopCloser(body)))
		if w.Code != 200 || len(kept) != c.kept || whole != c.whole {
			t.Errorf("%d bytes: %d, %d kept, whole %v", c.size, w.Code, len(kept), whole)
		}
		if c.size <= MaxPush && body.Len() > 0 {
			t.Errorf("%d bytes: %d left unread, so the answer may not arrive", c.size, body.Len())
		}
	}
	if left < 50*time.Second {
		t.Errorf("%v left of a minute", left)
	}
}

func TestADoorWithoutTimeIsNotRegistered(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("registered")
		}
	}()
	OpenWithin("None", "POST /x", 0, nil)
}

func TestABodyThatBreaksOffIsAnError(t *testing.T) {
	r := httptest.NewRequest("POST", "/x", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if body, whole, err := Read(r, 100); !errors.Is(err, io.ErrUnexpectedEOF) || body != nil || whole {
		t.Errorf("%q %v %v", body, whole, err)
	}
	r = httptest.NewRequest("POST", "/x", nil)
	if body, whole, err := Read(r, 100); err != nil || len(body) != 0 || !whole {
		t.Errorf("%q %v %v", body, whole, err)
	}
}

func TestAnAlarmIsAnErrorRecordOfAGoodAnswer(t *testing.T) {
	f, l := logging(t, "POST /x", func(w http.ResponseWriter, r *http.Request) error {
		From(r.Context()).Alarm("inbox-conflict")
		return ok(w, r)
	})
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("POST", "/x", nil))
	if record := l.one(t); w.Code != 200 || record["severity"] != "ERROR" || record["alarm"] != "inbox-conflict" {
		t.Errorf("%d %v", w.Code, record)
	}
}

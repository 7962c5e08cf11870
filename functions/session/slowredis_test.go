package session

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// Redis pauses for 350 ms, as a server does that gets no processor or forks: before Begin, and
// between Begin and Finish. Routes with the long timeout must succeed.
func TestSession_ToleratesShortRedisPause(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	pause := func() {
		if err := h.RDB.Do(t.Context(), "CLIENT", "PAUSE", 350, "ALL").Err(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range [][3]string{
		{"POST", "/session/locale", `{"locale":"ru"}`}, {"POST", "/session/currency", `{"currency":"AED"}`}, {"GET", "/session/export", ""},
	} {
		pause()
		h.MustDo(200, c[0], c[1], cookie, c[2])
		redistest.AfterNextPipeline(h.Deps.Redis, pause)
		h.MustDo(200, c[0], c[1], cookie, c[2])
	}
	pause()
	h.MustDo(204, "POST", "/session/clear", cookie, "")
}

package session

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

// TestAMomentOfRedisCostsNobodyTheirWish lets Redis answer nothing for a third of a second, as one does that gets no
// processor or begins a copy of itself: on the way in, and on the way out.
func TestAMomentOfRedisCostsNobodyTheirWish(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	pause := func() {
		if err := h.RDB.Do(t.Context(), "CLIENT", "PAUSE", 350, "ALL").Err(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range [][3]string{
		{"POST", "/session/locale", `{"locale":"ru"}`}, {"POST", "/session/currency", `{"currency":"AED"}`}, {"GET", "/session/export", ""},
	} {
		pause()
		h.Must(200, c[0], c[1], cookie, c[2])
		redistest.After(h.Parts.Redis, pause)
		h.Must(200, c[0], c[1], cookie, c[2])
	}
	pause()
	h.Must(204, "POST", "/session/clear", cookie, "")
}

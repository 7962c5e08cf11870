package wishlist

import "testing"

func TestWhatTheBrowserRefusesIsOnRecordWithTheWish(t *testing.T) {
	h := newHouse(t)
	cookie := h.must(201, "POST", "/wishlist", "", wish(1), "Sec-GPC", "1").cookie()
	h.parts.Redis.FlushAll(t.Context())
	h.must(201, "POST", "/wishlist", cookie, wish(2)) // and does not say it again
	h.must(204, "DELETE", "/wishlist/"+propertyID(1), cookie, "")
	if n := len(h.events("")); n != 0 {
		t.Errorf("%d events of a guest who refused", n)
	}
}

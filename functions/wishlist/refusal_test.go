package wishlist

import "testing"

func TestWhatTheBrowserRefusesIsOnRecordWithTheWish(t *testing.T) {
	h := newHouse(t)
	cookie := h.Must(201, "POST", "/wishlist", "", wish(1), "Sec-GPC", "1").Cookie()
	h.Parts.Redis.FlushAll(t.Context())
	h.Must(201, "POST", "/wishlist", cookie, wish(2)) // and does not say it again
	h.Must(204, "DELETE", "/wishlist/"+propertyID(1), cookie, "")
	if n := len(h.Events("")); n != 0 {
		t.Errorf("%d events of a guest who refused", n)
	}
}

package wishlist

import "testing"

func TestWishlistAdd_RecordsBrowserOptOut(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.MustDo(201, "POST", "/wishlist", "", addBody(1), "Sec-GPC", "1").SessionCookie()
	h.Deps.Redis.FlushAll(t.Context())
	h.MustDo(201, "POST", "/wishlist", cookie, addBody(2)) // without the opt-out header
	h.MustDo(204, "DELETE", "/wishlist/"+propertyID(1), cookie, "")
	if n := len(h.Events("")); n != 0 {
		t.Errorf("got %d events; want 0", n)
	}
}

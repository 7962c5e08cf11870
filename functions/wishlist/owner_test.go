package wishlist

import (
	"strings"
	"testing"
)

// The add takes the client's word for whose hotel it is; the card says whose it is, and that is whom a handoff must
// name.
func TestTheCardSaysWhoseTheHotelIs(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.Must(201, "POST", "/wishlist", cookie, strings.Replace(wish(1), tenantID(1), tenantID(2), 1))
	var list struct {
		Items []struct {
			TenantID string
			Listing  *struct{ TenantID string }
		}
	}
	h.Must(200, "GET", "/wishlist", cookie, "").Into(t, &list)
	if len(list.Items) != 1 || list.Items[0].TenantID != tenantID(2) || list.Items[0].Listing == nil || list.Items[0].Listing.TenantID != tenantID(1) {
		t.Errorf("%+v", list)
	}
}

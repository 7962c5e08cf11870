package wishlist

import (
	"strings"
	"testing"
)

// An item stores the tenant that the client named. The card names the tenant that owns the hotel,
// which a handoff needs.
func TestWishlistList_CardNamesOwningTenant(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.MustDo(201, "POST", "/wishlist", cookie, strings.Replace(addBody(1), tenantID(1), tenantID(2), 1))
	var list struct {
		Items []struct {
			TenantID string
			Listing  *struct{ TenantID string }
		}
	}
	h.MustDo(200, "GET", "/wishlist", cookie, "").Decode(t, &list)
	if len(list.Items) != 1 || list.Items[0].TenantID != tenantID(2) || list.Items[0].Listing == nil || list.Items[0].Listing.TenantID != tenantID(1) {
		t.Errorf("got %+v; want len(list.Items) = 1, list.Items[0].TenantID = %v, list.Items[0].Listing set, list.Items[0].Listing.TenantID = %v", list, tenantID(2), tenantID(1))
	}
}

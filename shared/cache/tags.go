package cache

// Tags connect entries with platform events: an event invalidates the tags of the changed things.

// TenantTag returns the tag of every entry that shows a tenant: a page with a hotel of the tenant,
// or the tenant's brand. Pure; TenantTag never fails and does not check the id.
func TenantTag(tenantID string) string { return "tenant:" + tenantID }

// PropertyTag returns the tag of every entry that shows a property. Pure; PropertyTag never fails
// and does not check the id.
func PropertyTag(propertyID string) string { return "property:" + propertyID }

// CellTag returns the tag of every entry whose area covers an H3 cell, for example
// "h3:8a283082aa67fff". An area carries cells of one resolution, so a change in a cell also
// invalidates the tags of all ancestors of the cell; the caller lists the ancestors. Pure; CellTag
// never fails and does not check the cell.
func CellTag(cell string) string { return "cell:" + cell }

// UnknownAreaTag is the tag of every entry with an unknown area. Every change of a listing
// invalidates it.
const UnknownAreaTag = "cell:anywhere"

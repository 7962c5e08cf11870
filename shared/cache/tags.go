package cache

// The tags entries carry. An event names what changed by the same tags.

// TenantTag is the tag of everything that shows a tenant: a page with one of its hotels, its brand.
func TenantTag(tenantID string) string { return "tenant:" + tenantID }

// PropertyTag is the tag of everything that shows a property.
func PropertyTag(propertyID string) string { return "property:" + propertyID }

// CellTag is the tag of everything whose area covers an H3 cell, "h3:8a283082aa67fff". An area carries cells of
// one resolution, so a change in a cell empties the tags of all its ancestors too.
func CellTag(cell string) string { return "cell:" + cell }

// UnknownAreaTag is the tag of what covers an unknown area: every change of a listing empties it.
const UnknownAreaTag = "cell:anywhere"

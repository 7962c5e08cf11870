// Tenants of recently shown hotels, offered by the switches of the inside view.

// tenantEvents dispatches "tenants" after each change.
export const tenantEvents = new EventTarget()

export const tenants = new Map() // tenant id → localized brand name, newest first

// rememberTenants records the tenants of a response; it keeps about 40.
export function rememberTenants(listings) {
  const before = [...tenants]
  tenants.clear()
  for (const l of listings) tenants.set(l.tenantId, l.brandPeek.brandName)
  for (const [id, brand] of before) if (!tenants.has(id) && tenants.size < 40) tenants.set(id, brand)
  tenantEvents.dispatchEvent(new Event("tenants"))
}

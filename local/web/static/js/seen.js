// Whose hotels were shown last: the tenants that the switches of the inside view offer.

// seen tells of new ones by the event "tenants".
export const seen = new EventTarget()

export const tenants = new Map() // tenant id → localized brand name, the newest first

// saw notes the hotels of an answer.
export function saw(listings) {
  const before = [...tenants]
  tenants.clear()
  for (const l of listings) tenants.set(l.tenantId, l.brandPeek.brandName)
  for (const [id, brand] of before) if (!tenants.has(id) && tenants.size < 40) tenants.set(id, brand)
  seen.dispatchEvent(new Event("tenants"))
}

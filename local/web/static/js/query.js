// The search query: in the URL, in the form, and in a request.
import {parseAmount} from "./i18n.js"

const oneDay = 24 * 60 * 60 * 1000

// addDays returns a date some days later, as text.
export const addDays = (date, days) => new Date(Date.parse(date + "T00:00:00Z") + days * oneDay).toISOString().slice(0, 10)
export const today = () => new Date().toISOString().slice(0, 10) // in UTC, like the API
export const maxDaysAhead = 499 // from today to check-in
export const maxNights = 30
export const nights = q => Math.round((Date.parse(q.checkOut) - Date.parse(q.checkIn)) / oneDay)

// multiFilters are the filters with several values.
export const multiFilters = ["amenities", "starRating", "propertyType", "neighbourhoods"]

export const sorts = ["recommended", "price-asc", "price-desc", "rating-desc", "distance-asc"]

const isDate = text => /^\d{4}-\d\d-\d\d$/.test(text) && new Date(text + "T00:00:00Z").toJSON()?.startsWith(text)

// parseQuery parses URL parameters. Missing and invalid parameters get a default.
export function parseQuery(parameters) {
  const text = name => parameters.get(name) ?? ""
  const date = (name, least, most, otherwise) => isDate(text(name)) && text(name) >= least && text(name) <= most ? text(name) : otherwise
  const oneOf = (name, values) => values.includes(text(name)) ? text(name) : values[0]
  const count = (name, least, most, otherwise) => {
    const n = Number(parameters.get(name) ?? otherwise)
    return Number.isInteger(n) && n >= least && n <= most ? n : otherwise
  }
  const q = {
    place: text("place"), kind: oneOf("kind", ["city", "region", "country"]), country: text("country"),
    checkIn: date("in", today(), addDays(today(), maxDaysAhead), addDays(today(), 10)), adults: count("adults", 1, 16, 2), children: count("children", 0, 10, 0),
    rooms: count("rooms", 1, 8, 1), sort: oneOf("sort", sorts), page: count("page", 1, 51, 1),
    guestRatingMin: Number(text("guestRatingMin")) > 0 ? text("guestRatingMin") : "", cancellationFlexibility: text("cancellationFlexibility"),
    maxPrice: /^\d{1,12}$/.test(text("maxPrice")) ? text("maxPrice") : "",
  }
  q.checkOut = date("out", addDays(q.checkIn, 1), addDays(q.checkIn, maxNights), addDays(q.checkIn, 3))
  const ages = text("ages").split(",").filter(Boolean).map(Number)
  q.ages = Array.from({length: q.children}, (_, i) => Number.isInteger(ages[i]) && ages[i] >= 0 && ages[i] <= 17 ? ages[i] : 8)
  for (const name of multiFilters) q[name] = parameters.getAll(name)
  q.starRating = q.starRating.filter(stars => /^[1-5]$/.test(stars))
  return q
}

// formatQuery is the inverse of parseQuery.
export function formatQuery(q) {
  const parameters = new URLSearchParams({place: q.place, kind: q.kind, country: q.country, ...stayParameters(q)})
  for (const name of ["guestRatingMin", "cancellationFlexibility", "maxPrice"]) if (q[name]) parameters.set(name, q[name])
  for (const name of multiFilters) for (const value of q[name]) parameters.append(name, value)
  if (q.sort !== "recommended") parameters.set("sort", q.sort)
  if (q.page > 1) parameters.set("page", q.page)
  return parameters.toString()
}

const stayParameters = q => ({
  in: q.checkIn, out: q.checkOut, adults: q.adults, rooms: q.rooms, ...(q.children ? {children: q.children, ages: q.ages.join(",")} : {}),
})

// formatStay returns the URL parameters of dates, occupancy and place.
export const formatStay = q => new URLSearchParams({...stayParameters(q), place: q.place, kind: q.kind, country: q.country}).toString()

export const pageSize = 20

// stayBody returns dates and occupancy of a request body.
export const stayBody = q => ({
  dates: {checkIn: q.checkIn, checkOut: q.checkOut},
  occupancy: {adults: q.adults, children: q.children, rooms: q.rooms, ...(q.children ? {childrenAges: q.ages} : {})},
})

// searchBody returns the body of POST /search, or with a box the body of POST /search/map.
export function searchBody(q, currency, box) {
  const filters = {}
  for (const name of multiFilters) if (q[name].length) filters[name] = name === "starRating" ? q[name].map(Number) : q[name]
  if (q.guestRatingMin) filters.guestRatingMin = Number(q.guestRatingMin)
  if (q.cancellationFlexibility) filters.cancellationFlexibility = q.cancellationFlexibility
  const maxPrice = parseAmount(q.maxPrice, currency)
  if (maxPrice) filters.priceRange = {max: maxPrice, currency}
  const geo = box ? {mode: "bounding-box", boundingBox: box} : q.kind === "city" ? {mode: "city", city: q.place} : {mode: "region", region: q.place}
  const body = {geo, ...stayBody(q), ...(Object.keys(filters).length ? {filters} : {}), sortKey: q.sort}
  return box ? body : {...body, page: {limit: pageSize, offset: (q.page - 1) * pageSize}}
}

// countFilters returns the number of active filters.
export const countFilters = q => multiFilters.reduce((n, name) => n + q[name].length, 0) +
  [q.guestRatingMin, q.cancellationFlexibility, q.maxPrice].filter(Boolean).length

// What a guest looks for, as it stands in the address, in the form, and in a request.
import {minor} from "./i18n.js"

const oneDay = 24 * 60 * 60 * 1000

// plus is a date some days later, as text.
export const plus = (date, days) => new Date(Date.parse(date + "T00:00:00Z") + days * oneDay).toISOString().slice(0, 10)
export const today = () => new Date().toISOString().slice(0, 10) // in UTC, as the API counts days
export const furthest = 499 // days from now to a check-in
export const longest = 30 // nights
export const nights = q => Math.round((Date.parse(q.checkOut) - Date.parse(q.checkIn)) / oneDay)

// lists are the filters of which a guest may choose several.
export const lists = ["amenities", "starRating", "propertyType", "neighbourhoods"]

export const sorts = ["recommended", "price-asc", "price-desc", "rating-desc", "distance-asc"]

const isDate = text => /^\d{4}-\d\d-\d\d$/.test(text) && new Date(text + "T00:00:00Z").toJSON()?.startsWith(text)

// read makes a query of the parameters of an address; what they leave out, or nobody can mean, has a default.
export function read(parameters) {
  const text = name => parameters.get(name) ?? ""
  const date = (name, least, most, otherwise) => isDate(text(name)) && text(name) >= least && text(name) <= most ? text(name) : otherwise
  const one = (name, values) => values.includes(text(name)) ? text(name) : values[0]
  const count = (name, least, most, otherwise) => {
    const n = Number(parameters.get(name) ?? otherwise)
    return Number.isInteger(n) && n >= least && n <= most ? n : otherwise
  }
  const q = {
    place: text("place"), kind: one("kind", ["city", "region", "country"]), country: text("country"),
    checkIn: date("in", today(), plus(today(), furthest), plus(today(), 10)), adults: count("adults", 1, 16, 2), children: count("children", 0, 10, 0),
    rooms: count("rooms", 1, 8, 1), sort: one("sort", sorts), page: count("page", 1, 51, 1),
    guestRatingMin: Number(text("guestRatingMin")) > 0 ? text("guestRatingMin") : "", cancellationFlexibility: text("cancellationFlexibility"),
    maxPrice: /^\d{1,12}$/.test(text("maxPrice")) ? text("maxPrice") : "",
  }
  q.checkOut = date("out", plus(q.checkIn, 1), plus(q.checkIn, longest), plus(q.checkIn, 3))
  const ages = text("ages").split(",").filter(Boolean).map(Number)
  q.ages = Array.from({length: q.children}, (_, i) => Number.isInteger(ages[i]) && ages[i] >= 0 && ages[i] <= 17 ? ages[i] : 8)
  for (const name of lists) q[name] = parameters.getAll(name)
  q.starRating = q.starRating.filter(stars => /^[1-5]$/.test(stars))
  return q
}

// write is the opposite of read.
export function write(q) {
  const parameters = new URLSearchParams({place: q.place, kind: q.kind, country: q.country, ...stay(q)})
  for (const name of ["guestRatingMin", "cancellationFlexibility", "maxPrice"]) if (q[name]) parameters.set(name, q[name])
  for (const name of lists) for (const value of q[name]) parameters.append(name, value)
  if (q.sort !== "recommended") parameters.set("sort", q.sort)
  if (q.page > 1) parameters.set("page", q.page)
  return parameters.toString()
}

const stay = q => ({
  in: q.checkIn, out: q.checkOut, adults: q.adults, rooms: q.rooms, ...(q.children ? {children: q.children, ages: q.ages.join(",")} : {}),
})

// writeStay is what of a query is for any hotel: when, and who comes.
export const writeStay = q => new URLSearchParams({...stay(q), place: q.place, kind: q.kind, country: q.country}).toString()

export const pageSize = 20

// who is the part of a request about when and for whom.
export const who = q => ({
  dates: {checkIn: q.checkIn, checkOut: q.checkOut},
  occupancy: {adults: q.adults, children: q.children, rooms: q.rooms, ...(q.children ? {childrenAges: q.ages} : {})},
})

// request is the body of POST /search; with a box that of POST /search/map.
export function request(q, currency, box) {
  const filters = {}
  for (const name of lists) if (q[name].length) filters[name] = name === "starRating" ? q[name].map(Number) : q[name]
  if (q.guestRatingMin) filters.guestRatingMin = Number(q.guestRatingMin)
  if (q.cancellationFlexibility) filters.cancellationFlexibility = q.cancellationFlexibility
  const most = minor(q.maxPrice, currency)
  if (most) filters.priceRange = {max: most, currency}
  const geo = box ? {mode: "bounding-box", boundingBox: box} : q.kind === "city" ? {mode: "city", city: q.place} : {mode: "region", region: q.place}
  const body = {geo, ...who(q), ...(Object.keys(filters).length ? {filters} : {}), sortKey: q.sort}
  return box ? body : {...body, page: {limit: pageSize, offset: (q.page - 1) * pageSize}}
}

// filtered counts the filters that are set.
export const filtered = q => lists.reduce((n, name) => n + q[name].length, 0) +
  [q.guestRatingMin, q.cancellationFlexibility, q.maxPrice].filter(Boolean).length

// Names that answers have as codes or in one language only: cities of the data set, and amenities.
import {call, places, shared} from "./api.js"
import {locale, placeName} from "./i18n.js"

let cities // promise of all cities, with their names and centres

// allCities are the cities of the data set; none when they cannot be had.
export const allCities = () => cities ??= places("", 500).catch(() => {
  cities = undefined
  return []
})

const known = new Map() // country and city → place

// prepare makes the names known that the functions below give at once.
export async function prepare() {
  for (const city of await allCities()) known.set(city.country + city.name, city)
}

// cityName is the name of a card's city in the language of the page.
export function cityName(city, country) {
  const place = known.get(country + city)
  return place ? placeName(place) : city
}

// find is the place that an address of the page names.
export async function find(query, kind) {
  if (!query) return null
  const all = await allCities()
  return all.find(c => kind === "city" && c.query === query) ??
    (await places(query.split(",")[0], 8).catch(() => [])).find(p => p.query === query && p.kind === kind) ?? null
}

const catalogs = new Map() // locale and place → promise of facets

// facets are the filters of a country, or of a region or city of it; none when they cannot be had.
export function facets(country, region) {
  const key = [locale, country, region].join()
  if (!catalogs.has(key)) {
    catalogs.set(key, call("GET", shared("/facets", region ? {country, region} : {country})).then(a => {
      for (const f of a.body.facets) if (f.key === "amenities") for (const v of f.values) labels.set(locale + v.value, v.label)
      return a.body.facets
    }).catch(() => {
      catalogs.delete(key)
      return []
    }))
  }
  return catalogs.get(key)
}

const labels = new Map() // locale and code → label

// amenity is what an amenity is called, as far as the facets said so.
export const amenity = code => labels.get(locale + code) ?? code.replaceAll("-", " ")

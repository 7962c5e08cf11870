// Localized names of cities and amenities, which responses contain as codes or in one language
// only.
import {call, suggestPlaces, sharedPath} from "./api.js"
import {locale, placeName} from "./i18n.js"

let cities // promise of all cities, with their names and centres

// allCities returns the cities of the dataset; an empty list if the request fails.
export const allCities = () => cities ??= suggestPlaces("", 500).catch(() => {
  cities = undefined
  return []
})

const cityByKey = new Map() // country and city → place

// loadCityNames loads the names for cityName.
export async function loadCityNames() {
  for (const city of await allCities()) cityByKey.set(city.country + city.name, city)
}

// cityName returns the name of a city in the page's language.
export function cityName(city, country) {
  const place = cityByKey.get(country + city)
  return place ? placeName(place) : city
}

// findPlace returns the place of a URL parameter, or null.
export async function findPlace(query, kind) {
  if (!query) return null
  const all = await allCities()
  return all.find(c => kind === "city" && c.query === query) ??
    (await suggestPlaces(query.split(",")[0], 8).catch(() => [])).find(p => p.query === query && p.kind === kind) ?? null
}

const catalogs = new Map() // locale and place → promise of facets

// facets returns the filters of a country, or of a region or city in it; an empty list if the
// request fails.
export function facets(country, region) {
  const key = [locale, country, region].join()
  if (!catalogs.has(key)) {
    catalogs.set(key, call("GET", sharedPath("/facets", region ? {country, region} : {country})).then(a => {
      for (const f of a.body.facets) if (f.key === "amenities") for (const v of f.values) amenityLabels.set(locale + v.value, v.label)
      return a.body.facets
    }).catch(() => {
      catalogs.delete(key)
      return []
    }))
  }
  return catalogs.get(key)
}

const amenityLabels = new Map() // locale and code → label

// amenityName returns the label of an amenity if the facets contained it, else its code.
export const amenityName = code => amenityLabels.get(locale + code) ?? code.replaceAll("-", " ")

// Hotel cards for lists, the map, the wishlist and similar hotels.
import {track} from "./api.js"
import {h, svg, icon} from "./dom.js"
import {t, name, money, number, plural} from "./i18n.js"
import {amenityName, cityName} from "./names.js"
import {formatStay, nights} from "./query.js"

// card returns the card of a hotel. pricing explains a missing rate: true means sold out, false
// means that prices are unavailable.
export function card(listing, {q, position, kind, heart, priced = true, pricing = true, from = {}, level = "h2"}) {
  const brand = name(listing.brandPeek.brandName)
  const title = name(listing.name)
  const link = `#/hotel/${listing.propertyId}?${formatStay(q)}`
  const trackClick = () => track("click", {kind, propertyId: listing.propertyId, tenantId: listing.tenantId, position, ...from})
  return h("article", {class: "card", "data-property": listing.propertyId, "data-tenant": listing.tenantId, vars: {"--brand": listing.brandPeek.primaryColor}},
    h("div", {class: "card-picture"}, picture(listing.propertyId, title, listing.thumbnail.alt), heart),
    h("div", {class: "card-body"},
      h("p", {class: "card-brand"}, h("i", {class: "brand-dot"}), h("span", {dir: "auto"}, brand)),
      h(level, {class: "card-name"}, h("a", {href: link, onclick: trackClick, dir: "auto"}, title)),
      h("p", {class: "card-place"}, stars(listing.starRating), h("span", {}, cityName(listing.city, listing.country)),
        listing.distanceKm !== undefined && h("span", {}, t("distance", {km: number(listing.distanceKm, {maximumFractionDigits: 1})}))),
      h("ul", {class: "chips"}, listing.badges.map(badge), listing.amenityHighlights.map(code => h("li", {class: "chip"}, amenityName(code))))),
    h("div", {class: "card-side"}, rating(listing.guestRating), priced && price(listing.rateSnapshot, q, pricing)))
}

// listingOf converts the detail of a hotel to a list entry.
export const listingOf = detail => ({...detail.property, thumbnail: detail.photos[0] ?? {alt: ""}, brandPeek: detail.brandPeek, amenityHighlights: []})

export const badge = code => h("li", {class: "chip chip-badge"}, t("badge." + code))

export function stars(n) {
  if (!n) return null
  return h("span", {class: "stars", role: "img", "aria-label": plural("stars", n)}, Array.from({length: Math.round(n)}, () => icon("star", true)))
}

export function rating(r) {
  if (!r) return null
  return h("p", {class: "rating"}, h("b", {}, number(r.value, {minimumFractionDigits: 1, maximumFractionDigits: 1})),
    h("span", {}, plural("ratings", r.count)))
}

// price returns the price block, or the reason for a missing rate.
function price(rate, q, pricing) {
  if (!rate) return h("p", {class: pricing ? "price price-none sold-out" : "price price-none"}, t(pricing ? "soldOut" : "noPrice"))
  return h("div", {class: "price"},
    h("p", {class: "price-night"}, h("b", {}, nightly(rate, q)), h("span", {}, " " + t("perNight"))),
    nights(q) > 1 && h("p", {class: "price-total"}, t("total", {amount: money(rate.totalForStayMinor, rate.currency)})),
    rate.isStale && h("p", {class: "price-stale"}, t("stalePrice")))
}

// nightly returns the price of a night. For several nights the text says "from", because the amount
// is the cheapest night.
export const nightly = (rate, q) => {
  const amount = money(rate.cheapestNightlyMinor, rate.currency)
  return nights(q) > 1 ? t("from", {amount}) : amount
}

// picture draws a picture derived from the id of the hotel, because the sandbox has no photographs.
export function picture(id, title, alt) {
  let seed = 7
  for (const letter of id) seed = (seed * 31 + letter.charCodeAt(0)) % 65521
  const next = n => (seed = (seed * 75 + 74) % 65537) % n
  const sun = 40 + next(220), ridge = (y, wild) => {
    let path = "M0 200V" + (y + next(wild))
    for (let x = 40; x <= 320; x += 40) path += `L${x} ${y + next(wild)}`
    return path + "V200Z"
  }
  const houses = Array.from({length: 5}, (_, i) => {
    const x = 15 + i * 62 + next(20), tall = 34 + next(56), wide = 34 + next(18)
    const windows = Array.from({length: Math.floor(tall / 20)}, (_, row) => svg("path", {class: "art-window", d: `M${x + 8} ${200 - tall + 9 + row * 18}h6v8h-6zM${x + wide - 14} ${200 - tall + 9 + row * 18}h6v8h-6z`}))
    return [svg("path", {class: "art-house", d: next(3) ? `M${x} 200v${-tall}h${wide}v${tall}Z` : `M${x} 200v${-tall}q${wide / 2} ${-wide * .7} ${wide} 0v${tall}Z`}), windows]
  })
  return svg("svg", {class: "art", viewBox: "0 0 320 200", preserveAspectRatio: "xMidYMax slice", role: "img", "aria-label": alt || title},
    svg("rect", {class: "art-sky", width: 320, height: 200}), svg("circle", {class: "art-sun", cx: sun, cy: 44 + next(20), r: 17}),
    svg("path", {class: "art-far", d: ridge(76, 46)}), svg("path", {class: "art-near", d: ridge(118, 30)}), houses)
}

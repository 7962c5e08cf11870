// The page of one hotel.
import {call, preferences, shared, tell} from "./api.js"
import {h, show, announce} from "./dom.js"
import {t, name, digits, money, number, day, plural, locale} from "./i18n.js"
import {calendar} from "./calendar.js"
import {badge, card, picture, rating, stars} from "./card.js"
import {cityName} from "./gazette.js"
import {field} from "./form.js"
import {leave} from "./memory.js"
import {degraded, refused, skeletons, stale} from "./notes.js"
import {furthest, longest, nights, plus, today, who, writeStay} from "./query.js"
import {heart} from "./wishlist.js"
import {saw} from "./seen.js"

// hotel shows the page of a property for the stay of a query, as long as somebody waits for it; change is told of another stay.
export async function hotel(view, id, q, change, signal) {
  show(view, skeletons(2))
  try {
    const answer = await call("GET", shared("/hotels/" + encodeURIComponent(id)), undefined, {signal})
    const detail = answer.body
    tell("page-view", {path: "/hotels/" + id, propertyId: id, tenantId: detail.property.tenantId})
    tell("funnel", {step: "detail.viewed", propertyId: id, tenantId: detail.property.tenantId})
    page(view, detail, answer.cache, q, change)
  } catch (problem) {
    if (!signal.aborted) show(view, crumb(q), h("h1", {}, t("failed")), refused(problem, () => hotel(view, id, q, change, signal)))
  }
}

function page(view, detail, cache, q, change) {
  const {property} = detail
  const title = name(property.name)
  const brand = name(detail.brandPeek.brandName)
  announce(title)
  const listing = {...property, brandPeek: detail.brandPeek}
  saw([listing])
  show(view, h("article", {class: "hotel", id: "hotel", "data-property": property.propertyId, "data-tenant": property.tenantId, vars: {"--brand": detail.brandPeek.primaryColor}},
    crumb(q),
    h("header", {class: "hotel-head"},
      h("div", {}, h("p", {class: "card-brand"}, h("i", {class: "brand-dot"}), h("span", {dir: "auto"}, brand)),
        h("h1", {dir: "auto", id: "hotel-name"}, title),
        h("p", {class: "card-place"}, stars(property.starRating), h("span", {dir: "auto"}, property.address || cityName(property.city, property.country))),
        h("ul", {class: "chips"}, property.badges.map(badge))),
      h("div", {class: "hotel-marks"}, rating(property.guestRating), heart(listing, "detail"))),
    degraded(detail.degraded), stale(cache),
    h("div", {class: "gallery"}, detail.photos.slice(0, 5).map((p, i) => h("div", {class: "shot"}, picture(property.propertyId + (i || ""), title, p.alt)))),
    h("div", {class: "hotel-columns"},
      h("div", {class: "hotel-text"},
        property.description && h("p", {class: "lead", dir: "auto"}, property.description),
        popularity(detail.popularitySignals),
        section("amenities", "amenities", h("ul", {class: "chips"}, detail.amenities.map(a => h("li", {class: "chip", dir: "auto"}, a.label)))),
        section("rooms", "rooms2", h("ul", {class: "rooms"}, detail.rooms.map(r => h("li", {},
          h("b", {dir: "auto"}, r.name), h("span", {}, plural("guests", r.maxOccupancy)), r.sizeSqm && h("span", {dir: "ltr"}, number(r.sizeSqm) + " m²"))))),
        preview(detail),
        calendar(property.propertyId, q),
        section("policies", "policies", h("dl", {class: "facts"}, fact(t("cancellation"), detail.policies.cancellation),
          fact(t("checkIn"), detail.policies.checkIn), fact(t("checkOut"), detail.policies.checkOut)))),
      aside(detail, q, brand, change)),
    detail.similarProperties?.length > 0 && section("similar", "similar", h("div", {class: "results"}, detail.similarProperties.map((s, i) =>
      card(s, {q, position: i + 1, kind: "similar-property", heart: heart(s, "detail"), priced: false, level: "h3"}))))))
}

const crumb = q => h("p", {class: "crumb"}, h("a", {href: q.place ? "#/search?" + writeStay(q) : "#/"}, t("back")))

const section = (id, key, ...content) => h("section", {class: "part", id: "part-" + id}, h("h2", {}, t(key)), content)

const fact = (term, text) => [h("dt", {}, term), h("dd", {}, h("bdi", {}, digits(text)))]

function popularity(signals) {
  if (!signals?.bookedLast24h && !signals?.viewedLast1h) return null
  return h("p", {class: "popular"}, signals.bookedLast24h && h("span", {}, t("booked", {n: number(signals.bookedLast24h)})),
    signals.viewedLast1h && h("span", {}, t("viewed", {n: number(signals.viewedLast1h)})))
}

// preview shows the price of each of the next nights as a bar.
function preview(detail) {
  const days = detail.priceCalendarPreview
  if (!days?.length) return null
  const most = Math.max(...days.map(d => Number(d.cheapestMinor))) // heights only: no amount is computed
  return section("prices", "prices", h("ol", {class: "bars", tabindex: "0", "aria-label": t("prices")}, days.map(d => h("li", {vars: {"--height": `${Math.round(30 + 70 * d.cheapestMinor / most)}%`}},
    h("span", {class: "bar-price"}, money(d.cheapestMinor, d.currency)), h("i", {class: "bar"}),
    h("span", {class: "bar-day"}, day(d.date, {weekday: "short"}), h("small", {}, day(d.date, {day: "numeric"})))))))
}

// aside is the way to book: price, stay, button.
function aside(detail, q, brand, change) {
  const rate = detail.cheapestRateSnapshot
  const checkIn = h("input", {type: "date", id: "stay-in", min: today(), max: plus(today(), furthest), value: q.checkIn, onchange: () => checkIn.value &&
    change({...q, checkIn: checkIn.value, checkOut: checkOut.value > checkIn.value ? checkOut.value : plus(checkIn.value, 1)})})
  const checkOut = h("input", {type: "date", id: "stay-out", min: plus(q.checkIn, 1), max: plus(q.checkIn, longest), value: q.checkOut,
    onchange: () => checkOut.value > q.checkIn && change({...q, checkOut: checkOut.value})})
  const outcome = h("div", {id: "book-outcome"})
  const button = h("button", {class: "button button-main button-book", type: "button", id: "book-button", onclick: () => book(detail, q, button, outcome)},
    t("book", {brand}))
  return h("aside", {class: "booking", "aria-labelledby": "your-stay"},
    rate ? h("p", {class: "booking-price"}, h("b", {}, t("from", {amount: money(rate.cheapestNightlyMinor, rate.currency)})), h("small", {}, t("tonight")),
      rate.isStale && h("small", {class: "price-stale"}, t("stalePrice")))
      : h("p", {class: "booking-price"}, h("span", {}, t(detail.degraded.some(d => d.part === "pricing") ? "noPrice" : "soldOut")), h("small", {}, t("tonight"))),
    h("h2", {id: "your-stay"}, t("yourStay")),
    h("div", {class: "stay-fields"}, field(t("checkIn"), checkIn), field(t("checkOut"), checkOut)),
    h("p", {class: "stay-words"}, plural("nights", nights(q)) + t("comma") + " " + guests(q)),
    button, h("p", {class: "hint"}, t("bookHint")), outcome)
}

// guests says who comes.
export const guests = q => [`${t("adults")} ${number(q.adults)}`, q.children ? `${t("children")} ${number(q.children)}` : "", `${t("rooms")} ${number(q.rooms)}`].filter(Boolean).join(" · ")

let attempt = null // {what, key}: a booking that failed is tried again under its key, so that it is made once

// book mints a handoff and goes to the booking page. The local system has none under the host of the link: a page here plays it.
async function book(detail, q, button, outcome) {
  const {propertyId, tenantId} = detail.property
  const body = {tenantId, propertyId, ...who(q), currency: preferences.currency, locale}
  const what = JSON.stringify(body)
  if (attempt?.what !== what) attempt = {what, key: crypto.randomUUID()}
  const before = button.textContent
  const done = () => {
    button.disabled = false
    button.textContent = before
  }
  button.disabled = true
  button.textContent = t("booking")
  show(outcome)
  try {
    tell("funnel", {step: "handoff.initiated", propertyId, tenantId})
    const {body: minted} = await call("POST", "/handoff", body, {key: attempt.key})
    attempt = null
    leave("back", location.hash)
    addEventListener("pageshow", done, {once: true}) // for whoever comes back; until then a second click would book twice
    location.assign("/book" + new URL(minted.url).search)
  } catch (problem) {
    show(outcome, refused(problem, () => book(detail, q, button, outcome)))
    done()
  }
}

// The hotel detail page.
import {call, preferences, sharedPath, track} from "./api.js"
import {h, show, announce} from "./dom.js"
import {t, name, digits, money, number, day, plural, locale} from "./i18n.js"
import {calendar} from "./calendar.js"
import {badge, card, picture, rating, stars} from "./card.js"
import {cityName} from "./names.js"
import {field} from "./form.js"
import {setItem} from "./tabstorage.js"
import {degradedMessage, problemMessage, skeletons, staleMessage} from "./messages.js"
import {maxDaysAhead, maxNights, nights, addDays, today, stayBody, formatStay} from "./query.js"
import {heart} from "./wishlist.js"
import {rememberTenants} from "./recenttenants.js"

// hotel shows the page of a property for the stay of a query, until signal aborts. change is called
// with a changed stay.
export async function hotel(view, id, q, change, signal) {
  show(view, skeletons(2))
  try {
    const answer = await call("GET", sharedPath("/hotels/" + encodeURIComponent(id)), undefined, {signal})
    const detail = answer.body
    track("page-view", {path: "/hotels/" + id, propertyId: id, tenantId: detail.property.tenantId})
    track("funnel", {step: "detail.viewed", propertyId: id, tenantId: detail.property.tenantId})
    renderHotel(view, detail, answer.cache, q, change)
  } catch (problem) {
    if (!signal.aborted) show(view, breadcrumb(q), h("h1", {}, t("failed")), problemMessage(problem, () => hotel(view, id, q, change, signal)))
  }
}

function renderHotel(view, detail, cache, q, change) {
  const {property} = detail
  const title = name(property.name)
  const brand = name(detail.brandPeek.brandName)
  announce(title)
  const listing = {...property, brandPeek: detail.brandPeek}
  rememberTenants([listing])
  show(view, h("article", {class: "hotel", id: "hotel", "data-property": property.propertyId, "data-tenant": property.tenantId, vars: {"--brand": detail.brandPeek.primaryColor}},
    breadcrumb(q),
    h("header", {class: "hotel-head"},
      h("div", {}, h("p", {class: "card-brand"}, h("i", {class: "brand-dot"}), h("span", {dir: "auto"}, brand)),
        h("h1", {dir: "auto", id: "hotel-name"}, title),
        h("p", {class: "card-place"}, stars(property.starRating), h("span", {dir: "auto"}, property.address || cityName(property.city, property.country))),
        h("ul", {class: "chips"}, property.badges.map(badge))),
      h("div", {class: "hotel-marks"}, rating(property.guestRating), heart(listing, "detail"))),
    degradedMessage(detail.degraded), staleMessage(cache),
    h("div", {class: "gallery"}, detail.photos.slice(0, 5).map((p, i) => h("div", {class: "shot"}, picture(property.propertyId + (i || ""), title, p.alt)))),
    h("div", {class: "hotel-columns"},
      h("div", {class: "hotel-text"},
        property.description && h("p", {class: "lead", dir: "auto"}, property.description),
        popularity(detail.popularitySignals),
        section("amenities", "amenities", h("ul", {class: "chips"}, detail.amenities.map(a => h("li", {class: "chip", dir: "auto"}, a.label)))),
        section("rooms", "rooms2", h("ul", {class: "rooms"}, detail.rooms.map(r => h("li", {},
          h("b", {dir: "auto"}, r.name), h("span", {}, plural("guests", r.maxOccupancy)), r.sizeSqm && h("span", {dir: "ltr"}, number(r.sizeSqm) + " m²"))))),
        pricePreview(detail),
        calendar(property.propertyId, q),
        section("policies", "policies", h("dl", {class: "facts"}, fact(t("cancellation"), detail.policies.cancellation),
          fact(t("checkIn"), detail.policies.checkIn), fact(t("checkOut"), detail.policies.checkOut)))),
      bookingPanel(detail, q, brand, change)),
    detail.similarProperties?.length > 0 && section("similar", "similar", h("div", {class: "results"}, detail.similarProperties.map((s, i) =>
      card(s, {q, position: i + 1, kind: "similar-property", heart: heart(s, "detail"), priced: false, level: "h3"}))))))
}

const breadcrumb = q => h("p", {class: "crumb"}, h("a", {href: q.place ? "#/search?" + formatStay(q) : "#/"}, t("back")))

const section = (id, key, ...content) => h("section", {class: "part", id: "part-" + id}, h("h2", {}, t(key)), content)

const fact = (term, text) => [h("dt", {}, term), h("dd", {}, h("bdi", {}, digits(text)))]

function popularity(signals) {
  if (!signals?.bookedLast24h && !signals?.viewedLast1h) return null
  return h("p", {class: "popular"}, signals.bookedLast24h && h("span", {}, t("booked", {n: number(signals.bookedLast24h)})),
    signals.viewedLast1h && h("span", {}, t("viewed", {n: number(signals.viewedLast1h)})))
}

// pricePreview shows the price of each of the next nights as a bar.
function pricePreview(detail) {
  const days = detail.priceCalendarPreview
  if (!days?.length) return null
  const max = Math.max(...days.map(d => Number(d.cheapestMinor))) // for bar heights only, not for amounts
  return section("prices", "prices", h("ol", {class: "bars", tabindex: "0", "aria-label": t("prices")}, days.map(d => h("li", {vars: {"--height": `${Math.round(30 + 70 * d.cheapestMinor / max)}%`}},
    h("span", {class: "bar-price"}, money(d.cheapestMinor, d.currency)), h("i", {class: "bar"}),
    h("span", {class: "bar-day"}, day(d.date, {weekday: "short"}), h("small", {}, day(d.date, {day: "numeric"})))))))
}

// bookingPanel returns the panel with price, stay and booking button.
function bookingPanel(detail, q, brand, change) {
  const rate = detail.cheapestRateSnapshot
  const checkIn = h("input", {type: "date", id: "stay-in", min: today(), max: addDays(today(), maxDaysAhead), value: q.checkIn, onchange: () => checkIn.value &&
    change({...q, checkIn: checkIn.value, checkOut: checkOut.value > checkIn.value ? checkOut.value : addDays(checkIn.value, 1)})})
  const checkOut = h("input", {type: "date", id: "stay-out", min: addDays(q.checkIn, 1), max: addDays(q.checkIn, maxNights), value: q.checkOut,
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

// guests returns the occupancy as text.
export const guests = q => [`${t("adults")} ${number(q.adults)}`, q.children ? `${t("children")} ${number(q.children)}` : "", `${t("rooms")} ${number(q.rooms)}`].filter(Boolean).join(" · ")

let attempt = null // {fingerprint, key}: a retry of the same booking reuses its idempotency key

// book mints a handoff and opens the booking page. The link's host does not exist locally, so /book
// stands in for the tenant's page.
async function book(detail, q, button, outcome) {
  const {propertyId, tenantId} = detail.property
  const body = {tenantId, propertyId, ...stayBody(q), currency: preferences.currency, locale}
  const fingerprint = JSON.stringify(body)
  if (attempt?.fingerprint !== fingerprint) attempt = {fingerprint, key: crypto.randomUUID()}
  const label = button.textContent
  const restore = () => {
    button.disabled = false
    button.textContent = label
  }
  button.disabled = true
  button.textContent = t("booking")
  show(outcome)
  try {
    track("funnel", {step: "handoff.initiated", propertyId, tenantId})
    const {body: minted} = await call("POST", "/handoff", body, {key: attempt.key})
    attempt = null
    setItem("back", location.hash)
    addEventListener("pageshow", restore, {once: true}) // re-enable after the guest returns; before that a second click would book twice
    location.assign("/book" + new URL(minted.url).search)
  } catch (problem) {
    show(outcome, problemMessage(problem, () => book(detail, q, button, outcome)))
    restore()
  }
}

// Stand-in for the booking page of a tenant: it takes the token from the URL, has the token
// verified and consumed, and shows the handoff.
import {call, localApi, preferences, sharedPath} from "./api.js"
import {h, show, announce} from "./dom.js"
import {getItem} from "./tabstorage.js"
import {t, name, number, day, time, setLocale, browserLocale} from "./i18n.js"
import {problemMessage} from "./messages.js"

const token = new URLSearchParams(location.search).get("h") ?? ""
// Remove the token from the URL at once, so that history, bookmarks and screenshots do not contain
// it.
history.replaceState(null, "", "/book")

const view = document.getElementById("view")
await setLocale(getItem("locale") ?? browserLocale())
document.title = t("bookTitle")
const back = () => h("a", {class: "button", id: "back-to-search", href: "/" + (getItem("back") ?? "")}, t("backToSearch"))

if (token) await consume()
else show(view, h("h1", {}, t("bookTitle")), h("p", {}, t("noToken")), back())

async function consume() {
  show(view, h("h1", {}, t("bookTitle")), h("p", {role: "status"}, t("verifying")))
  try {
    const handoff = await localApi("POST", "/tenant/bootstrap", {token})
    if (handoff.locale) await setLocale(handoff.locale)
    await showHandoff(handoff)
  } catch (problem) {
    show(view, h("h1", {}, t("refusedBook")), problemMessage(problem), back())
    document.documentElement.dataset.booked = "refused"
  }
}

// showHandoff shows the content of the handoff. The handoff does not contain the hotel's name, so
// the page requests it.
async function showHandoff(handoff) {
  if (handoff.currency) preferences.currency = handoff.currency
  const detail = await call("GET", sharedPath("/hotels/" + handoff.propertyId)).then(a => a.body).catch(() => null)
  const brand = detail ? name(detail.brandPeek.brandName) : handoff.tenantId
  if (detail) document.documentElement.style.setProperty("--brand", detail.brandPeek.primaryColor)
  const {adults, children, rooms} = handoff.occupancy
  const facts = {
    hotel: detail ? name(detail.property.name) : handoff.propertyId, checkIn: day(handoff.dates.checkIn), checkOut: day(handoff.dates.checkOut),
    adults: number(adults), children: number(children), rooms: number(rooms), currency: handoff.currency, language: handoff.locale,
    minted: time(handoff.mintedAt), expires: time(handoff.expiresAt), consumed: time(handoff.consumedAt), handoff: handoff.handoffId,
  }
  const outcome = h("div", {id: "again-outcome"})
  const repeat = h("button", {class: "button", type: "button", id: "use-again", onclick: () => replay(repeat, outcome)}, t("again"))
  document.title = t("bookWelcome", {brand})
  show(view, h("p", {class: "book-brand"}, h("i", {class: "brand-dot"}), h("span", {dir: "auto"}, brand)),
    h("h1", {dir: "auto"}, t("bookWelcome", {brand})), h("p", {class: "note"}, t("playing")),
    h("p", {class: "note note-good", role: "status", id: "verified"}, t("verified")),
    h("dl", {class: "facts", id: "handoff-facts"}, Object.entries(facts).map(([key, value]) =>
      [h("dt", {}, t(key)), h("dd", {"data-fact": key}, h("bdi", {}, value))])),
    h("div", {class: "book-buttons"}, repeat, back()), outcome)
  document.documentElement.dataset.booked = "yes"
  announce(t("verified"))
}

// replay consumes the token a second time, as a finder of the link would.
async function replay(button, outcome) {
  button.disabled = true
  try {
    await localApi("POST", "/tenant/bootstrap", {token})
    show(outcome, h("p", {class: "note note-error", role: "alert"}, t("failed")))
  } catch (problem) {
    show(outcome, h("h2", {}, t("refused")), problemMessage(problem))
  }
  button.disabled = false
}

// Plays the booking page of a house: it takes the token from its address, has it verified and used, and shows what it says.
import {call, local, preferences, shared} from "./api.js"
import {h, show, announce} from "./dom.js"
import {left} from "./memory.js"
import {t, name, number, day, time, speak, understood} from "./i18n.js"
import {refused} from "./notes.js"

const token = new URLSearchParams(location.search).get("h") ?? ""
// Out of the address at once: not into the history, a bookmark, a screenshot.
history.replaceState(null, "", "/book")

const view = document.getElementById("view")
await speak(left("locale") ?? understood())
document.title = t("bookTitle")
const back = () => h("a", {class: "button", id: "back-to-search", href: "/" + (left("back") ?? "")}, t("backToSearch"))

if (token) await use()
else show(view, h("h1", {}, t("bookTitle")), h("p", {}, t("noToken")), back())

async function use() {
  show(view, h("h1", {}, t("bookTitle")), h("p", {role: "status"}, t("verifying")))
  try {
    const given = await local("POST", "/tenant/bootstrap", {token})
    if (given.locale) await speak(given.locale)
    await welcome(given)
  } catch (problem) {
    show(view, h("h1", {}, t("refusedBook")), refused(problem), back())
    document.documentElement.dataset.booked = "refused"
  }
}

// welcome shows what the token said. The name of the hotel it does not say: the house knows its own, this page asks.
async function welcome(given) {
  if (given.currency) preferences.currency = given.currency
  const detail = await call("GET", shared("/hotels/" + given.propertyId)).then(a => a.body).catch(() => null)
  const brand = detail ? name(detail.brandPeek.brandName) : given.tenantId
  if (detail) document.documentElement.style.setProperty("--brand", detail.brandPeek.primaryColor)
  const {adults, children, rooms} = given.occupancy
  const facts = {
    hotel: detail ? name(detail.property.name) : given.propertyId, checkIn: day(given.dates.checkIn), checkOut: day(given.dates.checkOut),
    adults: number(adults), children: number(children), rooms: number(rooms), currency: given.currency, language: given.locale,
    minted: time(given.mintedAt), expires: time(given.expiresAt), consumed: time(given.consumedAt), handoff: given.handoffId,
  }
  const outcome = h("div", {id: "again-outcome"})
  const again = h("button", {class: "button", type: "button", id: "use-again", onclick: () => replay(again, outcome)}, t("again"))
  document.title = t("bookWelcome", {brand})
  show(view, h("p", {class: "book-brand"}, h("i", {class: "brand-dot"}), h("span", {dir: "auto"}, brand)),
    h("h1", {dir: "auto"}, t("bookWelcome", {brand})), h("p", {class: "note"}, t("playing")),
    h("p", {class: "note note-good", role: "status", id: "verified"}, t("verified")),
    h("dl", {class: "facts", id: "handoff-facts"}, Object.entries(facts).map(([key, value]) =>
      [h("dt", {}, t(key)), h("dd", {"data-fact": key}, h("bdi", {}, value))])),
    h("div", {class: "book-buttons"}, again, back()), outcome)
  document.documentElement.dataset.booked = "yes"
  announce(t("verified"))
}

// replay uses the token a second time, as somebody who found the link would.
async function replay(button, outcome) {
  button.disabled = true
  try {
    await local("POST", "/tenant/bootstrap", {token})
    show(outcome, h("p", {class: "note note-error", role: "alert"}, t("failed")))
  } catch (problem) {
    show(outcome, h("h2", {}, t("refused")), refused(problem))
  }
  button.disabled = false
}

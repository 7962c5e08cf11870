// Availability calendar of a hotel, month by month.
import {call, sharedPath} from "./api.js"
import {h, show} from "./dom.js"
import {t, day, money, number, plural, compactAmount} from "./i18n.js"
import {degradedMessage, problemMessage} from "./messages.js"
import {addDays, today} from "./query.js"

// calendar shows the month of the stay, with buttons for the previous and next month.
export function calendar(id, q) {
  const body = h("div", {class: "calendar-body"})
  const title = h("h3", {id: "calendar-month", "aria-live": "polite"})
  let month = q.checkIn.slice(0, 7)
  const step = (text, n, name) => h("button", {class: "button button-small", type: "button", id: name, onclick: () => {
    const to = new Date(month + "-15T00:00:00Z")
    to.setUTCMonth(to.getUTCMonth() + n)
    month = to.toISOString().slice(0, 7)
    load()
  }}, text)
  const previous = step(t("previous"), -1, "calendar-back"), next = step(t("next"), 1, "calendar-on")
  const load = async () => {
    const requested = month
    title.textContent = day(month + "-01", {month: "long", year: "numeric"})
    previous.disabled = month <= today().slice(0, 7)
    next.disabled = month >= addDays(today(), 460).slice(0, 7)
    const first = month + "-01" < today() ? today() : month + "-01"
    const last = new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 0)).toISOString().slice(0, 10)
    body.setAttribute("aria-busy", "true")
    try {
      const {body: found} = await call("GET", sharedPath(`/hotels/${id}/availability`, {from: first, to: last, adults: q.adults, children: q.children, rooms: q.rooms}))
      if (requested === month) show(body, degradedMessage(found.degraded), grid(month, last, new Map(found.days.map(d => [d.date, d])), q))
    } catch (problem) {
      if (requested === month) show(body, problemMessage(problem, load))
    }
    body.removeAttribute("aria-busy")
  }
  load()
  return h("section", {class: "part calendar", id: "part-calendar"}, h("h2", {}, t("calendar")), h("div", {class: "calendar-head"}, previous, title, next), body)
}

function grid(month, last, days, q) {
  const first = month + "-01"
  const offset = new Date(first + "T00:00:00Z").getUTCDay()
  const cells = Array.from({length: offset}, () => h("li", {class: "night night-none", "aria-hidden": "true"}))
  for (let date = first; date <= last; date = addDays(date, 1)) {
    const found = days.get(date)
    const chosen = date >= q.checkIn && date < q.checkOut
    const state = !found ? "unknown" : found.available ? "free" : "full"
    const left = found?.available && found.roomsLeft <= 3 && plural("left", found.roomsLeft)
    const price = found?.available && found.cheapestMinor && money(found.cheapestMinor, found.currency)
    const words = [day(date), t(state), price, left].filter(Boolean).join(t("comma") + " ")
    cells.push(h("li", {class: `night night-${state}${chosen ? " night-chosen" : ""}`, title: words},
      h("span", {class: "hidden"}, words), h("span", {"aria-hidden": "true"}, number(Number(date.slice(8)))),
      price && h("small", {"aria-hidden": "true"}, compactAmount(found.cheapestMinor, found.currency))))
  }
  // 3 January 2027 is a Sunday.
  const names = Array.from({length: 7}, (_, i) => h("li", {class: "weekday", "aria-hidden": "true"}, day(addDays("2027-01-03", i), {weekday: "short"})))
  const currency = [...days.values()].find(d => d.currency)?.currency
  return [h("ol", {class: "nights"}, names, cells), currency && h("p", {class: "hint"}, t("calendarCurrency", {currency}))]
}

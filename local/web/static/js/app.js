// The page: what its address says is what it shows.
import {call, calls, insist, local, preferences, shared, tell} from "./api.js"
import {h, show, icon} from "./dom.js"
import {currencies, day, isLocale, locale, locales, number, placeName, speak, t, understood} from "./i18n.js"
import {card, listingOf} from "./card.js"
import {form} from "./form.js"
import {allCities, find, prepare} from "./gazette.js"
import {guests, hotel} from "./hotel.js"
import {list} from "./list.js"
import {mapPage} from "./map.js"
import {forget, leave, left} from "./memory.js"
import {refused, trouble} from "./notes.js"
import {read, write, writeStay} from "./query.js"
import {heart, know, savedPage} from "./wishlist.js"
import {openInside} from "./inside.js"
import {belongs} from "./stream.js"

const view = document.getElementById("view")
const tabs = new BroadcastChannel("session")

// go shows a page for a query. The same one is asked for again: a guest who presses the button wants to know how things are now.
function go(page, q) {
  const to = `#/${page}?${write(q)}`
  if (location.hash === to) return route()
  location.hash = to
}

// parts of the address: "#/hotel/ppt_1?in=…" is ["hotel", "ppt_1"] and the parameters.
function address() {
  const [path, parameters] = location.hash.replace(/^#\/?/, "").split("?")
  return [path.split("/"), new URLSearchParams(parameters)]
}

let shown = new AbortController() // ends what the page before was waiting for

async function route() {
  shown.abort()
  const {signal} = shown = new AbortController()
  try {
    await open(signal)
  } catch (problem) {
    if (!signal.aborted) show(view, refused(problem, route))
  }
}

let last = "" // the page before, to know when to begin at its top

async function open(signal) {
  const [[page, id], parameters] = address()
  const q = read(parameters)
  for (const link of document.querySelectorAll("nav a[data-page]")) {
    const here = link.dataset.page === (page || "search")
    here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")
    link.href = !q.place ? {search: "#/", map: "#/map", saved: "#/saved"}[link.dataset.page]
      : `#/${link.dataset.page}?${link.dataset.page === "saved" ? writeStay(q) : write({...q, page: 1})}` // the stay goes along everywhere
  }
  document.body.dataset.page = page || "home"
  const here = location.hash.split("?")[0] + " " + q.page
  if (last !== here) {
    scrollTo(0, 0)
    if (last) view.focus({preventScroll: true})
  }
  last = here
  const focused = view.contains(document.activeElement) && document.activeElement.id
  // refocus gives the focus back to what had it when the same page is shown again, or whoever uses the keyboard would begin at the top.
  const refocus = () => {
    if (focused && document.activeElement === document.body) (document.getElementById(focused) ?? view).focus({preventScroll: true})
  }
  if (page === "hotel") {
    await hotel(view, id ?? "", q, stay => location.hash = `#/hotel/${id}?${writeStay(stay)}`, signal)
    return refocus()
  }
  if (page === "saved") return savedPage(view, q)
  const place = await find(q.place, q.kind)
  if (signal.aborted) return
  if (place && !q.country) q.country = place.country
  const searching = form(q, place, entered => go(page === "map" ? "map" : "search", entered))
  if (page === "map") {
    const below = h("div", {class: "below"})
    show(view, fold(searching, q, place), below)
    const center = place ?? await somewhere()
    if (signal.aborted) return
    const found = mapPage(below, q, center, signal)
    refocus()
    return found
  }
  if (page === "search" && q.place) {
    const below = h("div", {class: "below"})
    show(view, fold(searching, q, place), below)
    tell("page-view", {path: "/search"})
    const found = list(below, q, place, changed => go("search", changed), signal)
    refocus()
    return found
  }
  return home(q, searching)
}

// somewhere is where a map begins that was opened without a place.
async function somewhere() {
  const all = await allCities()
  return all.find(c => c.query === "Kabul") ?? all[0]
}

// fold leaves one line of the form where there is little room: what is looked for, to be opened and changed.
function fold(searching, q, place) {
  if (!matchMedia("(max-width: 640px)").matches) return searching
  const short = {day: "numeric", month: "short"}
  return h("details", {class: "fold", id: "search-fold"}, h("summary", {}, icon("search"), h("span", {},
    h("b", {dir: "auto"}, place ? placeName(place) : q.place), h("small", {}, `${day(q.checkIn, short)} – ${day(q.checkOut, short)} · ${guests(q)}`))), searching)
}

let fresh = null // the session as it was answered a moment ago

// home is where a visit begins: the form, some cities, and what was looked at before.
async function home(q, searching) {
  const cities = h("div", {class: "cities", id: "popular-cities"}), recent = h("section", {class: "results part", id: "recent"})
  show(view, h("section", {class: "hero"}, h("h1", {}, t("headline")), h("p", {}, t("tagline")), searching),
    h("section", {class: "part"}, h("h2", {}, t("popular")), cities), recent)
  tell("page-view", {path: "/"})
  const all = await allCities()
  const first = ["Kabul", "Herat", "Mazar-i-Sharif", "Bamyan", "Dushanbe", "Mashhad", "Peshawar", "Samarkand"]
  const rank = c => (first.indexOf(c.name) + 1) || 99
  show(cities, [...all].sort((a, b) => rank(a) - rank(b)).slice(0, 8).map(c =>
    h("a", {class: "city", href: "#/search?" + write({...q, place: c.query, kind: c.kind, country: c.country})}, icon("pin"), h("span", {dir: "auto"}, placeName(c)))))
  const session = fresh ?? (await call("GET", "/session").catch(() => null))?.body
  fresh = null
  if (!session) return // whatever is asked next says why
  const ids = session.recentlyViewed.slice(0, 4).map(v => v.propertyId)
  if (ids.length === 0) return
  const hotels = await Promise.all(ids.map(id => call("GET", shared("/hotels/" + id)).then(a => a.body, () => null)))
  show(recent, h("h2", {}, t("recent")), hotels.filter(Boolean).map((d, i) => {
    const listing = listingOf(d)
    return card(listing, {q, position: i + 1, kind: "listing-card", heart: heart(listing, "recently-viewed"), priced: false, level: "h3"})
  }))
}

// chrome writes what is around every page, in its language.
function chrome() {
  document.title = t("title")
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = t(element.dataset.text)
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", t(element.dataset.label))
  const languages = document.getElementById("locale"), money = document.getElementById("currency")
  show(languages, Object.entries(locales).map(([tag, own]) => h("option", {value: tag, lang: tag, selected: tag === locale}, own)))
  show(money, currencies.map(c => h("option", {value: c, selected: c === preferences.currency}, c)))
}

async function choose(path, body) {
  try {
    const {body: session} = await insist("POST", "/session/" + path, body)
    await settle(session)
  } catch (problem) {
    show(view, refused(problem, () => choose(path, body)))
    chrome()
  }
}

// settle takes over what the session prefers, and shows the page in it.
async function settle(session) {
  preferences.currency = session.currencyPreference
  await speak(session.localePreference)
  leave("locale", locale)
  know(session)
  belongs(session.id)
  fresh = session
  chrome()
  await route()
  fresh = null
}

async function start() {
  // An address may ask for a language and a currency: /?lang=ps-AF&currency=AFN.
  const asked = new URLSearchParams(location.search)
  const wanted = isLocale(asked.get("lang")) ? asked.get("lang") : null
  // What it asked for holds in this tab: the way back from a booking does not ask again.
  await speak([wanted, left("locale")].find(isLocale) ?? understood())
  chrome()
  document.getElementById("locale").addEventListener("change", e => choose("locale", {locale: e.target.value}))
  document.getElementById("currency").addEventListener("change", e => choose("currency", {currency: e.target.value}))
  document.getElementById("forget").addEventListener("click", async () => {
    try {
      await call("POST", "/session/clear")
      forget()
      tabs.postMessage("forgotten")
      location.assign("/" + location.search) // whose address asks for a language is not sent to another one
    } catch (problem) {
      trouble(problem)
    }
  })
  tabs.addEventListener("message", () => location.reload()) // what another tab shows is of nobody any more
  document.getElementById("skip").addEventListener("click", e => { // the address says which page it is, not where on it
    e.preventDefault()
    view.focus()
  })
  calls.addEventListener("checking", e => document.getElementById("checking").hidden = !e.detail)
  openInside()
  // Data of others are shown with their names, as their licences ask.
  local("GET", "/dataset").then(d => document.getElementById("attribution").textContent = d.attribution ?? "", () => {})
  addEventListener("hashchange", route)
  try {
    let {body: session} = await call("GET", "/session")
    // A wish of the address that is not recorded at present is no reason to show nothing.
    const wish = async (path, body) => session = await insist("POST", "/session/" + path, body).then(a => a.body, problem => (trouble(problem), session))
    if (wanted && wanted !== session.localePreference) await wish("locale", {locale: wanted})
    if (currencies.includes(asked.get("currency")) && asked.get("currency") !== session.currencyPreference) await wish("currency", {currency: asked.get("currency")})
    prepare()
    await settle(session)
  } catch (problem) {
    show(view, refused(problem, () => location.reload()))
  }
  document.documentElement.dataset.ready = "yes"
}

await start()

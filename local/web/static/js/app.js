// Entry point and router of the page: the URL determines the content.
import {call, calls, callWithRetry, localApi, preferences, sharedPath, track} from "./api.js"
import {h, show, icon} from "./dom.js"
import {currencies, day, isLocale, locale, locales, number, placeName, setLocale, t, browserLocale} from "./i18n.js"
import {card, listingOf} from "./card.js"
import {form} from "./form.js"
import {allCities, findPlace, loadCityNames} from "./names.js"
import {guests, hotel} from "./hotel.js"
import {list} from "./list.js"
import {mapPage} from "./map.js"
import {clear, setItem, getItem} from "./tabstorage.js"
import {problemMessage, toastProblem} from "./messages.js"
import {parseQuery, formatQuery, formatStay} from "./query.js"
import {heart, setSaved, savedPage} from "./wishlist.js"
import {openInside} from "./inside.js"
import {setSession} from "./stream.js"

const view = document.getElementById("view")
const tabs = new BroadcastChannel("session")

// navigate shows a page for a query. If the URL does not change, the page is loaded again, because
// the guest expects current results after a click.
function navigate(page, q) {
  const target = `#/${page}?${formatQuery(q)}`
  if (location.hash === target) return route()
  location.hash = target
}

// parseAddress splits the URL fragment: "#/hotel/ppt_1?in=…" is ["hotel", "ppt_1"] and the
// parameters.
function parseAddress() {
  const [path, parameters] = location.hash.replace(/^#\/?/, "").split("?")
  return [path.split("/"), new URLSearchParams(parameters)]
}

let pageAbort = new AbortController() // aborts the requests of the previous page

async function route() {
  pageAbort.abort()
  const {signal} = pageAbort = new AbortController()
  try {
    await renderPage(signal)
  } catch (problem) {
    if (!signal.aborted) show(view, problemMessage(problem, route))
  }
}

let lastPage = "" // the previous page, to scroll to the top on a change

async function renderPage(signal) {
  const [[page, id], parameters] = parseAddress()
  const q = parseQuery(parameters)
  for (const link of document.querySelectorAll("nav a[data-page]")) {
    const here = link.dataset.page === (page || "search")
    here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")
    link.href = !q.place ? {search: "#/", map: "#/map", saved: "#/saved"}[link.dataset.page]
      : `#/${link.dataset.page}?${link.dataset.page === "saved" ? formatStay(q) : formatQuery({...q, page: 1})}` // every link keeps the stay
  }
  document.body.dataset.page = page || "home"
  const here = location.hash.split("?")[0] + " " + q.page
  if (lastPage !== here) {
    scrollTo(0, 0)
    if (lastPage) view.focus({preventScroll: true})
  }
  lastPage = here
  const focused = view.contains(document.activeElement) && document.activeElement.id
  // refocus restores the focus after the same page is rendered again, so that keyboard users do not
  // start at the top.
  const refocus = () => {
    if (focused && document.activeElement === document.body) (document.getElementById(focused) ?? view).focus({preventScroll: true})
  }
  if (page === "hotel") {
    await hotel(view, id ?? "", q, stay => location.hash = `#/hotel/${id}?${formatStay(stay)}`, signal)
    return refocus()
  }
  if (page === "saved") return savedPage(view, q)
  const place = await findPlace(q.place, q.kind)
  if (signal.aborted) return
  if (place && !q.country) q.country = place.country
  const searching = form(q, place, entered => navigate(page === "map" ? "map" : "search", entered))
  if (page === "map") {
    const results = h("div", {class: "below"})
    show(view, collapsed(searching, q, place), results)
    const center = place ?? await defaultCenter()
    if (signal.aborted) return
    const found = mapPage(results, q, center, signal)
    refocus()
    return found
  }
  if (page === "search" && q.place) {
    const results = h("div", {class: "below"})
    show(view, collapsed(searching, q, place), results)
    track("page-view", {path: "/search"})
    const found = list(results, q, place, changed => navigate("search", changed), signal)
    refocus()
    return found
  }
  return home(q, searching)
}

// defaultCenter returns the centre of a map opened without a place.
async function defaultCenter() {
  const all = await allCities()
  return all.find(c => c.query === "Kabul") ?? all[0]
}

// collapsed wraps the form on narrow screens: a summary line with the query that expands to the
// form.
function collapsed(searching, q, place) {
  if (!matchMedia("(max-width: 640px)").matches) return searching
  const short = {day: "numeric", month: "short"}
  return h("details", {class: "fold", id: "search-fold"}, h("summary", {}, icon("search"), h("span", {},
    h("b", {dir: "auto"}, place ? placeName(place) : q.place), h("small", {}, `${day(q.checkIn, short)} – ${day(q.checkOut, short)} · ${guests(q)}`))), searching)
}

let freshSession = null // the session of the last response, used once

// home shows the start page: the form, popular cities and recently viewed hotels.
async function home(q, searching) {
  const cities = h("div", {class: "cities", id: "popular-cities"}), recent = h("section", {class: "results part", id: "recent"})
  show(view, h("section", {class: "hero"}, h("h1", {}, t("headline")), h("p", {}, t("tagline")), searching),
    h("section", {class: "part"}, h("h2", {}, t("popular")), cities), recent)
  track("page-view", {path: "/"})
  const all = await allCities()
  const first = ["Kabul", "Herat", "Mazar-i-Sharif", "Bamyan", "Dushanbe", "Mashhad", "Peshawar", "Samarkand"]
  const rank = c => (first.indexOf(c.name) + 1) || 99
  show(cities, [...all].sort((a, b) => rank(a) - rank(b)).slice(0, 8).map(c =>
    h("a", {class: "city", href: "#/search?" + formatQuery({...q, place: c.query, kind: c.kind, country: c.country})}, icon("pin"), h("span", {dir: "auto"}, placeName(c)))))
  const session = freshSession ?? (await call("GET", "/session").catch(() => null))?.body
  freshSession = null
  if (!session) return // the next request reports the error
  const ids = session.recentlyViewed.slice(0, 4).map(v => v.propertyId)
  if (ids.length === 0) return
  const hotels = await Promise.all(ids.map(id => call("GET", sharedPath("/hotels/" + id)).then(a => a.body, () => null)))
  show(recent, h("h2", {}, t("recent")), hotels.filter(Boolean).map((d, i) => {
    const listing = listingOf(d)
    return card(listing, {q, position: i + 1, kind: "listing-card", heart: heart(listing, "recently-viewed"), priced: false, level: "h3"})
  }))
}

// renderFrame writes the parts around every page in the current language.
function renderFrame() {
  document.title = t("title")
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = t(element.dataset.text)
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", t(element.dataset.label))
  const languages = document.getElementById("locale"), money = document.getElementById("currency")
  show(languages, Object.entries(locales).map(([tag, own]) => h("option", {value: tag, lang: tag, selected: tag === locale}, own)))
  show(money, currencies.map(c => h("option", {value: c, selected: c === preferences.currency}, c)))
}

async function setPreference(path, body) {
  try {
    const {body: session} = await callWithRetry("POST", "/session/" + path, body)
    await applySession(session)
  } catch (problem) {
    show(view, problemMessage(problem, () => setPreference(path, body)))
    renderFrame()
  }
}

// applySession applies the preferences of the session and renders the page with them.
async function applySession(session) {
  preferences.currency = session.currencyPreference
  await setLocale(session.localePreference)
  setItem("locale", locale)
  setSaved(session)
  setSession(session.id)
  freshSession = session
  renderFrame()
  await route()
  freshSession = null
}

async function start() {
  // The URL may set a language and a currency: /?lang=ps-AF&currency=AFN.
  const urlParameters = new URLSearchParams(location.search)
  const wantedLocale = isLocale(urlParameters.get("lang")) ? urlParameters.get("lang") : null
  // The values hold for this tab: returning from the booking page does not set them again.
  await setLocale([wantedLocale, getItem("locale")].find(isLocale) ?? browserLocale())
  renderFrame()
  document.getElementById("locale").addEventListener("change", e => setPreference("locale", {locale: e.target.value}))
  document.getElementById("currency").addEventListener("change", e => setPreference("currency", {currency: e.target.value}))
  document.getElementById("forget").addEventListener("click", async () => {
    try {
      await call("POST", "/session/clear")
      clear()
      tabs.postMessage("forgotten")
      location.assign("/" + location.search) // keep the query: it may set a language
    } catch (problem) {
      toastProblem(problem)
    }
  })
  tabs.addEventListener("message", () => location.reload()) // another tab has erased the session
  document.getElementById("skip").addEventListener("click", e => { // the fragment names the page, not a position
    e.preventDefault()
    view.focus()
  })
  calls.addEventListener("checking", e => document.getElementById("checking").hidden = !e.detail)
  openInside()
  // The licences of external data require attribution.
  localApi("GET", "/dataset").then(d => document.getElementById("attribution").textContent = d.attribution ?? "", () => {})
  addEventListener("hashchange", route)
  try {
    let {body: session} = await call("GET", "/session")
    // If a preference of the URL cannot be saved, the page is shown without it.
    const setIfPossible = async (path, body) => session = await callWithRetry("POST", "/session/" + path, body).then(a => a.body, problem => (toastProblem(problem), session))
    if (wantedLocale && wantedLocale !== session.localePreference) await setIfPossible("locale", {locale: wantedLocale})
    if (currencies.includes(urlParameters.get("currency")) && urlParameters.get("currency") !== session.currencyPreference) await setIfPossible("currency", {currency: urlParameters.get("currency")})
    loadCityNames()
    await applySession(session)
  } catch (problem) {
    show(view, problemMessage(problem, () => location.reload()))
  }
  document.documentElement.dataset.ready = "yes"
}

await start()

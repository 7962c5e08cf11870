// The map: hotel pins over a base map drawn by the page. No external tile server is used.
import {call, preferences, sharedPath, track} from "./api.js"
import {h, show, announce} from "./dom.js"
import {t, money, name, number, plural} from "./i18n.js"
import {card, listingOf, nightly} from "./card.js"
import {basemap} from "./basemap.js"
import {degradedMessage, problemMessage, staleMessage} from "./messages.js"
import {View} from "./projection.js"
import {searchBody} from "./query.js"
import {heart} from "./wishlist.js"

const defaultCenter = {lat: 34.5281, lng: 69.1723}
const maxArea = 25 // square degrees, the API's limit
const tooWide = area => (area.neLat - area.swLat) * (area.neLng - area.swLng) > maxArea

// mapPage shows the map around a place, until signal aborts. It searches after each move.
export function mapPage(container, q, place, signal) {
  track("funnel", {step: "map.opened"})
  const note = h("div", {id: "map-note", class: "map-note"}), pins = h("div", {class: "pins", id: "pins"}), preview = h("div", {class: "map-preview", id: "map-preview"})
  const basemapCanvas = h("canvas", {class: "basemap", "aria-hidden": "true"})
  const follow = h("input", {type: "checkbox", id: "map-follow", checked: true})
  const searchButton = h("button", {class: "button button-main map-here", type: "button", id: "map-search", hidden: true, onclick: () => search()}, t("searchHere"))
  const zoom = (id, text, sign, by) => h("button", {class: "button button-round", type: "button", id, "aria-label": text, onclick: () => setView(view.zoomed(by))}, sign)
  const box = h("div", {class: "map", id: "map", role: "application", tabindex: "0", "aria-label": t("mapHelp"), dir: "ltr"}, basemapCanvas, pins,
    h("div", {class: "map-zoom"}, zoom("zoom-in", t("zoomIn"), "+", 1), zoom("zoom-out", t("zoomOut"), "−", -1)), searchButton)
  const title = h("h1", {id: "map-title"}, t("map"))
  show(container, title, h("div", {class: "tools"}, h("div", {class: "check"}, follow, h("label", {for: "map-follow"}, t("follow")))),
    h("div", {class: "map-frame"}, h("div", {class: "map-over"}, box, note), preview), h("p", {class: "hint"}, t("outlines")))

  const zooms = {city: 12, region: 8.5, country: 6}
  let view = new View(place?.center ?? defaultCenter, zooms[place?.kind ?? "city"], box.clientWidth, box.clientHeight)
  while (tooWide(view.box())) view = view.zoomed(.25)
  let found = null, spotlight = "", timer, lastRequest = 0
  const draw = basemap(basemapCanvas)

  const paint = () => {
    draw(view, [...pins.children].map(pin => view.toPixel(pin.at)))
    for (const pin of pins.children) {
      const {x, y} = view.toPixel(pin.at)
      pin.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`
      pin.hidden = x < -20 || y < -20 || x > view.width + 20 || y > view.height + 40
    }
  }
  // setView moves the map and searches there after a short delay.
  const setView = next => {
    view = next
    requestAnimationFrame(paint)
    clearTimeout(timer)
    searchButton.hidden = follow.checked
    if (follow.checked) timer = setTimeout(search, 350)
  }

  const search = async () => {
    searchButton.hidden = true
    const area = view.box()
    if (tooWide(area)) {
      lastRequest++
      show(note, h("p", {class: "note", role: "status"}, t("tooWide")))
      return
    }
    const requestNumber = ++lastRequest
    box.setAttribute("aria-busy", "true")
    try {
      const response = await call("POST", "/search/map", {...searchBody(q, preferences.currency, area), zoom: Math.round(view.zoom), ...(spotlight ? {spotlightPropertyId: spotlight} : {})}, {signal})
      if (requestNumber !== lastRequest) return
      found = response.body
      show(note, degradedMessage(found.degraded), staleMessage(response.cache))
      title.textContent = plural("pins", found.resultCount)
      announce(title.textContent)
      showPins()
    } catch (problem) {
      if (requestNumber === lastRequest && !signal.aborted) show(note, problemMessage(problem, search))
    }
    if (requestNumber === lastRequest) box.removeAttribute("aria-busy")
  }

  // showPins renders the pins of a response. The focused pin keeps the focus.
  const showPins = () => {
    const focused = document.activeElement?.closest?.(".pin")?.dataset.property
    show(pins, found.pins.map((p, i) => {
      const rate = p.cheapestNightlyMinor && money(p.cheapestNightlyMinor, p.currency)
      const selected = p.propertyId === spotlight
      const label = t("pin", {n: number(i + 1), of: number(found.pins.length)}) + (rate ? t("comma") + " " + rate : "")
      const pin = h("button", {class: selected ? "pin pin-lit" : "pin", type: "button", "data-property": p.propertyId, "aria-label": label, "aria-pressed": String(selected),
        tabindex: i === 0 || selected ? "0" : "-1", vars: {"--brand": p.brandColor}, onclick: () => selectPin(p)}, selected && rate ? h("span", {class: "pin-rate", dir: "auto"}, rate) : null)
      pin.at = p.geo
      return pin
    }))
    paint()
    if (focused) pins.querySelector(`[data-property="${focused}"]`)?.focus()
  }

  // selectPin shows the hotel of a pin with its rate: the API returns a rate only for the
  // spotlighted pin.
  const selectPin = async p => {
    spotlight = p.propertyId
    for (const pin of pins.children) pin.classList.toggle("pin-lit", pin.dataset.property === spotlight)
    clearTimeout(timer)
    const [detail] = await Promise.all([call("GET", sharedPath("/hotels/" + spotlight)).then(a => a.body, problem => ({problem})), search()])
    if (signal.aborted || spotlight !== p.propertyId) return
    if (detail.problem) return show(preview, problemMessage(detail.problem))
    const listing = listingOf(detail)
    track("click", {kind: "map-pin", propertyId: spotlight, tenantId: listing.tenantId, ...(found ? {searchSessionId: found.searchSessionId} : {})})
    const rate = found?.pins.find(one => one.propertyId === spotlight)
    const shownRate = rate?.cheapestNightlyMinor && h("p", {class: "price-night", id: "spotlight-rate"}, h("b", {}, nightly(rate, q)), h("span", {}, " " + t("perNight")))
    const shown = card(listing, {q, position: 1, kind: "map-pin", heart: heart(listing, "map"), priced: false})
    if (shownRate) shown.querySelector(".card-side").append(shownRate)
    show(preview, shown)
    announce(name(listing.name))
  }

  addControls(box, () => view, setView)
  const resizeObserver = new ResizeObserver(() => {
    if (!box.clientWidth || box.clientWidth === view.width && box.clientHeight === view.height) return
    setView(new View(view.center, view.zoom, box.clientWidth, box.clientHeight))
  })
  resizeObserver.observe(box)
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint, {signal})
  signal.addEventListener("abort", () => {
    resizeObserver.disconnect()
    clearTimeout(timer)
  })
  paint()
  return search()
}

// addControls moves and zooms the map by pointer, wheel and keyboard.
function addControls(box, get, set) {
  const down = new Map() // pointer id → last position
  const at = e => {
    const edge = box.getBoundingClientRect()
    return {x: e.clientX - edge.left, y: e.clientY - edge.top}
  }
  box.addEventListener("pointerdown", e => {
    if (!e.target.closest("button")) {
      box.setPointerCapture(e.pointerId)
      down.set(e.pointerId, at(e))
    }
  })
  box.addEventListener("pointermove", e => {
    const before = down.get(e.pointerId)
    if (!before) return
    const now = at(e)
    const other = [...down].find(([id]) => id !== e.pointerId)?.[1]
    down.set(e.pointerId, now)
    if (!other) return set(get().moved(now.x - before.x, now.y - before.y))
    const distance = p => Math.max(1, Math.hypot(p.x - other.x, p.y - other.y))
    set(get().zoomed(Math.log2(distance(now) / distance(before)), other))
  })
  for (const end of ["pointerup", "pointercancel"]) box.addEventListener(end, e => down.delete(e.pointerId))
  box.addEventListener("wheel", e => {
    e.preventDefault()
    set(get().zoomed(Math.max(-1, Math.min(1, -e.deltaY / 240)), at(e)))
  }, {passive: false})
  const step = 80
  box.addEventListener("keydown", e => {
    const pin = e.target.closest(".pin")
    const direction = {ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step]}[e.key]
    if (pin && direction) {
      const next = e.key === "ArrowLeft" || e.key === "ArrowUp" ? pin.previousElementSibling : pin.nextElementSibling
      next?.focus()
    } else if (direction) set(get().moved(...direction))
    else if (e.key === "+" || e.key === "=") set(get().zoomed(1))
    else if (e.key === "-") set(get().zoomed(-1))
    else return
    e.preventDefault()
  })
}

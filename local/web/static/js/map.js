// The map: pins of hotels over outlines, drawn here. Nobody outside is asked for a picture of the ground.
import {call, preferences, shared, tell} from "./api.js"
import {h, show, announce} from "./dom.js"
import {t, money, name, number, plural} from "./i18n.js"
import {card, listingOf, nightly} from "./card.js"
import {canvas} from "./ground.js"
import {degraded, refused, stale} from "./notes.js"
import {View} from "./projection.js"
import {request} from "./query.js"
import {heart} from "./wishlist.js"

const kabul = {lat: 34.5281, lng: 69.1723}
const widest = 25 // square degrees, what the API takes
const tooWide = area => (area.neLat - area.swLat) * (area.neLng - area.swLng) > widest

// mapPage shows the map around a place, until the signal. It searches where it is moved to.
export function mapPage(into, q, place, signal) {
  tell("funnel", {step: "map.opened"})
  const note = h("div", {id: "map-note", class: "map-note"}), pins = h("div", {class: "pins", id: "pins"}), peek = h("div", {class: "peek", id: "peek"})
  const ground = h("canvas", {class: "ground", "aria-hidden": "true"})
  const follow = h("input", {type: "checkbox", id: "map-follow", checked: true})
  const here = h("button", {class: "button button-main map-here", type: "button", id: "map-search", hidden: true, onclick: () => look()}, t("searchHere"))
  const zoom = (id, text, sign, by) => h("button", {class: "button button-round", type: "button", id, "aria-label": text, onclick: () => set(view.zoomed(by))}, sign)
  const box = h("div", {class: "map", id: "map", role: "application", tabindex: "0", "aria-label": t("mapHelp"), dir: "ltr"}, ground, pins,
    h("div", {class: "map-zoom"}, zoom("zoom-in", t("zoomIn"), "+", 1), zoom("zoom-out", t("zoomOut"), "−", -1)), here)
  const title = h("h1", {id: "map-title"}, t("map"))
  show(into, title, h("div", {class: "tools"}, h("div", {class: "check"}, follow, h("label", {for: "map-follow"}, t("follow")))),
    h("div", {class: "map-frame"}, h("div", {class: "map-over"}, box, note), peek), h("p", {class: "hint"}, t("outlines")))

  const zooms = {city: 12, region: 8.5, country: 6}
  let view = new View(place?.center ?? kabul, zooms[place?.kind ?? "city"], box.clientWidth, box.clientHeight)
  while (tooWide(view.box())) view = view.zoomed(.25)
  let found = null, spotlight = "", wait, asked = 0
  const draw = canvas(ground)

  const paint = () => {
    draw(view, [...pins.children].map(pin => view.toPixel(pin.at)))
    for (const pin of pins.children) {
      const {x, y} = view.toPixel(pin.at)
      pin.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`
      pin.hidden = x < -20 || y < -20 || x > view.width + 20 || y > view.height + 40
    }
  }
  // set shows another part of the world, and looks there a moment later.
  const set = next => {
    view = next
    requestAnimationFrame(paint)
    clearTimeout(wait)
    here.hidden = follow.checked
    if (follow.checked) wait = setTimeout(look, 350)
  }

  const look = async () => {
    here.hidden = true
    const area = view.box()
    if (tooWide(area)) {
      asked++
      show(note, h("p", {class: "note", role: "status"}, t("tooWide")))
      return
    }
    const mine = ++asked
    box.setAttribute("aria-busy", "true")
    try {
      const answer = await call("POST", "/search/map", {...request(q, preferences.currency, area), zoom: Math.round(view.zoom), ...(spotlight ? {spotlightPropertyId: spotlight} : {})}, {signal})
      if (mine !== asked) return
      found = answer.body
      show(note, degraded(found.degraded), stale(answer.cache))
      title.textContent = plural("pins", found.resultCount)
      announce(title.textContent)
      stick()
    } catch (problem) {
      if (mine === asked && !signal.aborted) show(note, refused(problem, look))
    }
    if (mine === asked) box.removeAttribute("aria-busy")
  }

  // stick puts the pins of an answer on the map; the one that has the focus keeps it.
  const stick = () => {
    const focused = document.activeElement?.closest?.(".pin")?.dataset.property
    show(pins, found.pins.map((p, i) => {
      const rate = p.cheapestNightlyMinor && money(p.cheapestNightlyMinor, p.currency)
      const lit = p.propertyId === spotlight
      const label = t("pin", {n: number(i + 1), of: number(found.pins.length)}) + (rate ? t("comma") + " " + rate : "")
      const pin = h("button", {class: lit ? "pin pin-lit" : "pin", type: "button", "data-property": p.propertyId, "aria-label": label, "aria-pressed": String(lit),
        tabindex: i === 0 || lit ? "0" : "-1", vars: {"--brand": p.brandColor}, onclick: () => light(p)}, lit && rate ? h("span", {class: "pin-rate", dir: "auto"}, rate) : null)
      pin.at = p.geo
      return pin
    }))
    paint()
    if (focused) pins.querySelector(`[data-property="${focused}"]`)?.focus()
  }

  // light shows the hotel of a pin, with the rate that only the spotlighted one has.
  const light = async p => {
    spotlight = p.propertyId
    for (const pin of pins.children) pin.classList.toggle("pin-lit", pin.dataset.property === spotlight)
    clearTimeout(wait)
    const [detail] = await Promise.all([call("GET", shared("/hotels/" + spotlight)).then(a => a.body, problem => ({problem})), look()])
    if (signal.aborted || spotlight !== p.propertyId) return
    if (detail.problem) return show(peek, refused(detail.problem))
    const listing = listingOf(detail)
    tell("click", {kind: "map-pin", propertyId: spotlight, tenantId: listing.tenantId, ...(found ? {searchSessionId: found.searchSessionId} : {})})
    const rate = found?.pins.find(one => one.propertyId === spotlight)
    const shownRate = rate?.cheapestNightlyMinor && h("p", {class: "price-night", id: "spotlight-rate"}, h("b", {}, nightly(rate, q)), h("span", {}, " " + t("perNight")))
    const shown = card(listing, {q, position: 1, kind: "map-pin", heart: heart(listing, "map"), priced: false})
    if (shownRate) shown.querySelector(".card-side").append(shownRate)
    show(peek, shown)
    announce(name(listing.name))
  }

  moves(box, () => view, set)
  const sized = new ResizeObserver(() => {
    if (!box.clientWidth || box.clientWidth === view.width && box.clientHeight === view.height) return
    set(new View(view.center, view.zoom, box.clientWidth, box.clientHeight))
  })
  sized.observe(box)
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint, {signal})
  signal.addEventListener("abort", () => {
    sized.disconnect()
    clearTimeout(wait)
  })
  paint()
  return look()
}

// moves lets pointer, wheel and keys move the map.
function moves(box, get, set) {
  const down = new Map() // pointer id → where it was
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
    const apart = p => Math.max(1, Math.hypot(p.x - other.x, p.y - other.y))
    set(get().zoomed(Math.log2(apart(now) / apart(before)), other))
  })
  for (const end of ["pointerup", "pointercancel"]) box.addEventListener(end, e => down.delete(e.pointerId))
  box.addEventListener("wheel", e => {
    e.preventDefault()
    set(get().zoomed(Math.max(-1, Math.min(1, -e.deltaY / 240)), at(e)))
  }, {passive: false})
  const step = 80
  box.addEventListener("keydown", e => {
    const pin = e.target.closest(".pin")
    const way = {ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step]}[e.key]
    if (pin && way) {
      const next = e.key === "ArrowLeft" || e.key === "ArrowUp" ? pin.previousElementSibling : pin.nextElementSibling
      next?.focus()
    } else if (way) set(get().moved(...way))
    else if (e.key === "+" || e.key === "=") set(get().zoomed(1))
    else if (e.key === "-") set(get().zoomed(-1))
    else return
    e.preventDefault()
  })
}

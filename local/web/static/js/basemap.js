// The base map below the pins: graticule, country outlines, city names and a scale.
import {number, placeName} from "./i18n.js"
import {allCities} from "./names.js"
import {outlines} from "./outlines.js"

// basemap returns a function that draws a view onto a canvas element.
export function basemap(element) {
  let lines = [], cities = [], last, pinned
  Promise.all([outlines(), allCities()]).then(([some, others]) => {
    lines = some
    cities = others
    if (last) draw(last, pinned)
  })
  // pins are the pixel positions of the pins; city names avoid them.
  const draw = (view, pins) => {
    last = view
    pinned = pins
    const ratio = devicePixelRatio || 1
    element.width = view.width * ratio
    element.height = view.height * ratio
    const context = element.getContext("2d")
    const style = getComputedStyle(element)
    context.scale(ratio, ratio)
    context.direction = document.documentElement.dir // text direction; the map itself is not mirrored
    context.fillStyle = style.getPropertyValue("--map-background")
    context.fillRect(0, 0, view.width, view.height)
    drawGraticule(context, view, style.getPropertyValue("--graticule"))
    context.strokeStyle = style.getPropertyValue("--outline")
    context.lineWidth = 1.5
    context.lineJoin = "round"
    context.beginPath()
    for (const line of lines) strokeLine(context, view, line)
    context.stroke()
    drawCityNames(context, view, cities, pins, style)
    drawScale(context, view, style)
  }
  return draw
}

function strokeLine(context, view, line) {
  let drawing = false
  for (const [lng, lat] of line) {
    const {x, y} = view.toPixel({lat, lng})
    drawing ? context.lineTo(x, y) : context.moveTo(x, y)
    drawing = true
  }
}

// steps are the possible distances between graticule lines, in degrees.
const steps = [30, 10, 5, 2, 1, .5, .2, .1, .05, .02, .01, .005, .002]

function drawGraticule(context, view, color) {
  const box = view.box()
  const step = steps.find(s => s / 360 * view.scale < 140) ?? .001
  context.strokeStyle = color
  context.lineWidth = 1
  context.beginPath()
  for (let lng = Math.ceil(box.swLng / step) * step; lng <= box.neLng; lng += step) {
    const {x} = view.toPixel({lat: 0, lng})
    context.moveTo(Math.round(x) + .5, 0)
    context.lineTo(Math.round(x) + .5, view.height)
  }
  for (let lat = Math.ceil(box.swLat / step) * step; lat <= box.neLat; lat += step) {
    const {y} = view.toPixel({lat, lng: 0})
    context.moveTo(0, Math.round(y) + .5)
    context.lineTo(view.width, Math.round(y) + .5)
  }
  context.stroke()
}

// drawCityNames draws the names that fit, larger cities first.
function drawCityNames(context, view, cities, pins, style) {
  const near = view.zoom > 10
  context.font = `600 ${near ? 20 : 13}px ${style.fontFamily}`
  context.textAlign = "center"
  context.lineJoin = "round"
  const taken = []
  for (const city of [...cities].sort((a, b) => b.properties - a.properties)) {
    const {x, y} = view.toPixel(city.center)
    if (x < -60 || y < -20 || x > view.width + 60 || y > view.height + 20) continue
    const text = placeName(city)
    const wide = context.measureText(text).width / 2 + 8
    if (taken.some(b => Math.abs(b.x - x) < b.wide + wide && Math.abs(b.y - y) < 22)) continue
    taken.push({x, y, wide})
    context.strokeStyle = style.getPropertyValue("--map-background")
    context.lineWidth = 4
    // Pins surround the centre of a city, so the name is placed where no pin covers it, if
    // possible.
    const free = below => !pins.some(p => Math.abs(p.x - x) < wide + 11 && p.y > y + below - 24 && p.y - 28 < y + below + 8)
    const below = near ? [24, 48, 72, 96, -48, -72, -96].find(free) ?? 24 : -8
    context.strokeText(text, x, y + below)
    context.fillStyle = style.getPropertyValue("--place")
    context.fillText(text, x, y + below)
    context.beginPath()
    context.arc(x, y, 2.5, 0, 7)
    context.fill()
  }
}

// drawScale draws a scale bar, valid at the centre of the map.
function drawScale(context, view, style) {
  const perPixel = 40075 * Math.cos(view.center.lat * Math.PI / 180) / view.scale // km
  const km = [1000, 500, 200, 100, 50, 20, 10, 5, 2, 1, .5, .2, .1].find(n => n / perPixel < 120) ?? .1
  const long = km / perPixel, x = 14, y = view.height - 16
  context.strokeStyle = context.fillStyle = style.getPropertyValue("--place")
  context.lineWidth = 2
  context.beginPath()
  context.moveTo(x, y - 5)
  context.lineTo(x, y)
  context.lineTo(x + long, y)
  context.lineTo(x + long, y - 5)
  context.stroke()
  context.font = `12px ${style.fontFamily}`
  context.textAlign = "center"
  context.fillText(number(km, {style: "unit", unit: "kilometer"}), x + long / 2, y - 7)
}

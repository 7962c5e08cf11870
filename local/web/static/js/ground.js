// What is under the pins: a graticule, outlines, the names of cities.
import {number, placeName} from "./i18n.js"
import {allCities} from "./gazette.js"
import {outlines} from "./outlines.js"

// canvas makes the function that draws a view onto a canvas.
export function canvas(element) {
  let lines = [], cities = [], last, stuck
  Promise.all([outlines(), allCities()]).then(([some, others]) => {
    lines = some
    cities = others
    if (last) draw(last, stuck)
  })
  // pins are the points where something stands.
  const draw = (view, pins) => {
    last = view
    stuck = pins
    const sharp = devicePixelRatio || 1
    element.width = view.width * sharp
    element.height = view.height * sharp
    const pen = element.getContext("2d")
    const style = getComputedStyle(element)
    pen.scale(sharp, sharp)
    pen.direction = document.documentElement.dir // of the texts; the map itself does not turn around
    pen.fillStyle = style.getPropertyValue("--ground")
    pen.fillRect(0, 0, view.width, view.height)
    graticule(pen, view, style.getPropertyValue("--graticule"))
    pen.strokeStyle = style.getPropertyValue("--outline")
    pen.lineWidth = 1.5
    pen.lineJoin = "round"
    pen.beginPath()
    for (const line of lines) stroke(pen, view, line)
    pen.stroke()
    names(pen, view, cities, pins, style)
    scale(pen, view, style)
  }
  return draw
}

function stroke(pen, view, line) {
  let drawing = false
  for (const [lng, lat] of line) {
    const {x, y} = view.toPixel({lat, lng})
    drawing ? pen.lineTo(x, y) : pen.moveTo(x, y)
    drawing = true
  }
}

// steps between the lines of the graticule, in degrees.
const steps = [30, 10, 5, 2, 1, .5, .2, .1, .05, .02, .01, .005, .002]

function graticule(pen, view, color) {
  const box = view.box()
  const step = steps.find(s => s / 360 * view.scale < 140) ?? .001
  pen.strokeStyle = color
  pen.lineWidth = 1
  pen.beginPath()
  for (let lng = Math.ceil(box.swLng / step) * step; lng <= box.neLng; lng += step) {
    const {x} = view.toPixel({lat: 0, lng})
    pen.moveTo(Math.round(x) + .5, 0)
    pen.lineTo(Math.round(x) + .5, view.height)
  }
  for (let lat = Math.ceil(box.swLat / step) * step; lat <= box.neLat; lat += step) {
    const {y} = view.toPixel({lat, lng: 0})
    pen.moveTo(0, Math.round(y) + .5)
    pen.lineTo(view.width, Math.round(y) + .5)
  }
  pen.stroke()
}

// names writes those that have room, larger cities first.
function names(pen, view, cities, pins, style) {
  const near = view.zoom > 10
  pen.font = `600 ${near ? 20 : 13}px ${style.fontFamily}`
  pen.textAlign = "center"
  pen.lineJoin = "round"
  const taken = []
  for (const city of [...cities].sort((a, b) => b.properties - a.properties)) {
    const {x, y} = view.toPixel(city.center)
    if (x < -60 || y < -20 || x > view.width + 60 || y > view.height + 20) continue
    const text = placeName(city)
    const wide = pen.measureText(text).width / 2 + 8
    if (taken.some(b => Math.abs(b.x - x) < b.wide + wide && Math.abs(b.y - y) < 22)) continue
    taken.push({x, y, wide})
    pen.strokeStyle = style.getPropertyValue("--ground")
    pen.lineWidth = 4
    // The pins of a city stand around its centre: its name goes where none of them covers it, if there is such a place.
    const free = below => !pins.some(p => Math.abs(p.x - x) < wide + 11 && p.y > y + below - 24 && p.y - 28 < y + below + 8)
    const below = near ? [24, 48, 72, 96, -48, -72, -96].find(free) ?? 24 : -8
    pen.strokeText(text, x, y + below)
    pen.fillStyle = style.getPropertyValue("--place")
    pen.fillText(text, x, y + below)
    pen.beginPath()
    pen.arc(x, y, 2.5, 0, 7)
    pen.fill()
  }
}

// scale draws how long some kilometres are, at the middle of the map.
function scale(pen, view, style) {
  const perPixel = 40075 * Math.cos(view.center.lat * Math.PI / 180) / view.scale // km
  const km = [1000, 500, 200, 100, 50, 20, 10, 5, 2, 1, .5, .2, .1].find(n => n / perPixel < 120) ?? .1
  const long = km / perPixel, x = 14, y = view.height - 16
  pen.strokeStyle = pen.fillStyle = style.getPropertyValue("--place")
  pen.lineWidth = 2
  pen.beginPath()
  pen.moveTo(x, y - 5)
  pen.lineTo(x, y)
  pen.lineTo(x + long, y)
  pen.lineTo(x + long, y - 5)
  pen.stroke()
  pen.font = `12px ${style.fontFamily}`
  pen.textAlign = "center"
  pen.fillText(number(km, {style: "unit", unit: "kilometer"}), x + long / 2, y - 7)
}

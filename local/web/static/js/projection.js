// Web Mercator: where a place is on a map of some size, centre and zoom, and which place is at a point of it.

const tile = 256
const clamp = (n, most) => Math.max(-most, Math.min(most, n))

// world is the position of a place on a map of the whole world that is 1 wide and 1 high.
function world({lat, lng}) {
  const sine = Math.sin(clamp(lat, 85) * Math.PI / 180)
  return {x: lng / 360 + .5, y: .5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)}
}

const place = ({x, y}) => ({lat: Math.atan(Math.sinh((.5 - y) * 2 * Math.PI)) * 180 / Math.PI, lng: (x - .5) * 360})

// View is a part of the world: {center, zoom, width, height}, the last two in pixels.
export class View {
  constructor(center, zoom, width, height) {
    center = {lat: clamp(center.lat, 85), lng: clamp(center.lng, 180)} // the world ends there: nobody finds anything beyond
    Object.assign(this, {center, zoom: Math.max(2, Math.min(17, zoom)), width, height})
    this.scale = tile * 2 ** this.zoom
    this.middle = world(center)
  }

  // toPixel is where a place is.
  toPixel(where) {
    const at = world(where)
    return {x: (at.x - this.middle.x) * this.scale + this.width / 2, y: (at.y - this.middle.y) * this.scale + this.height / 2}
  }

  // toPlace is the place at a pixel.
  toPlace({x, y}) {
    return place({x: this.middle.x + (x - this.width / 2) / this.scale, y: this.middle.y + (y - this.height / 2) / this.scale})
  }

  // moved is the view after the map was dragged by some pixels.
  moved(dx, dy) {
    return new View(this.toPlace({x: this.width / 2 - dx, y: this.height / 2 - dy}), this.zoom, this.width, this.height)
  }

  // zoomed is the view after zooming by some levels around a pixel, which stays where it is.
  zoomed(levels, around = {x: this.width / 2, y: this.height / 2}) {
    const fixed = this.toPlace(around)
    const next = new View(this.center, this.zoom + levels, this.width, this.height)
    const now = next.toPixel(fixed)
    return next.moved(around.x - now.x, around.y - now.y)
  }

  // box is the part of the world as the API takes it, rounded to what a map can show.
  box() {
    const sw = this.toPlace({x: 0, y: this.height}), ne = this.toPlace({x: this.width, y: 0})
    const round = n => Math.round(n * 1e4) / 1e4
    return {swLat: round(sw.lat), swLng: round(Math.max(-180, sw.lng)), neLat: round(ne.lat), neLng: round(Math.min(180, ne.lng))}
  }
}

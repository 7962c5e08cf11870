// Web Mercator projection between coordinates and pixels of a map with a size, centre and zoom.

const tile = 256
const clamp = (n, most) => Math.max(-most, Math.min(most, n))

// project returns the position of a coordinate on a world map that is 1 wide and 1 high.
function project({lat, lng}) {
  const sine = Math.sin(clamp(lat, 85) * Math.PI / 180)
  return {x: lng / 360 + .5, y: .5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)}
}

const unproject = ({x, y}) => ({lat: Math.atan(Math.sinh((.5 - y) * 2 * Math.PI)) * 180 / Math.PI, lng: (x - .5) * 360})

// View is a map section: {center, zoom, width, height}; width and height in pixels.
export class View {
  constructor(center, zoom, width, height) {
    center = {lat: clamp(center.lat, 85), lng: clamp(center.lng, 180)} // the limits of the projection
    Object.assign(this, {center, zoom: Math.max(2, Math.min(17, zoom)), width, height})
    this.scale = tile * 2 ** this.zoom
    this.middle = project(center)
  }

  // toPixel returns the pixel of a coordinate.
  toPixel(where) {
    const at = project(where)
    return {x: (at.x - this.middle.x) * this.scale + this.width / 2, y: (at.y - this.middle.y) * this.scale + this.height / 2}
  }

  // toPlace returns the coordinate of a pixel.
  toPlace({x, y}) {
    return unproject({x: this.middle.x + (x - this.width / 2) / this.scale, y: this.middle.y + (y - this.height / 2) / this.scale})
  }

  // moved returns the view after dragging the map by some pixels.
  moved(dx, dy) {
    return new View(this.toPlace({x: this.width / 2 - dx, y: this.height / 2 - dy}), this.zoom, this.width, this.height)
  }

  // zoomed returns the view after zooming by some levels around a pixel, which stays fixed.
  zoomed(levels, around = {x: this.width / 2, y: this.height / 2}) {
    const fixed = this.toPlace(around)
    const next = new View(this.center, this.zoom + levels, this.width, this.height)
    const now = next.toPixel(fixed)
    return next.moved(around.x - now.x, around.y - now.y)
  }

  // box returns the bounding box for the API, rounded to four decimals.
  box() {
    const sw = this.toPlace({x: 0, y: this.height}), ne = this.toPlace({x: this.width, y: 0})
    const round = n => Math.round(n * 1e4) / 1e4
    return {swLat: round(sw.lat), swLng: round(Math.max(-180, sw.lng)), neLat: round(ne.lat), neLng: round(Math.min(180, ne.lng))}
  }
}

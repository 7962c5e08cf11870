// The outlines of countries, read from the TopoJSON of the world atlas: lines of [longitude, latitude], each border once.
let lines // promise

export const outlines = () => lines ??= fetch("/third_party/world-atlas/countries-110m.json").then(a => a.json()).then(decode).catch(() => [])

// decode undoes what TopoJSON does: a line begins at a point of a grid and goes on by differences.
function decode({arcs, transform: {scale, translate}}) {
  return arcs.map(arc => {
    let x = 0, y = 0
    return arc.map(([dx, dy]) => {
      x += dx
      y += dy
      return [x * scale[0] + translate[0], y * scale[1] + translate[1]]
    })
  })
}

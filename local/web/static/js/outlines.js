// Country outlines from the TopoJSON of the world atlas: lines of [longitude, latitude], each
// border once.
let lines // promise

export const outlines = () => lines ??= fetch("/third_party/world-atlas/countries-110m.json").then(a => a.json()).then(decode).catch(() => [])

// decode converts TopoJSON arcs, which start at a grid point and continue with differences.
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

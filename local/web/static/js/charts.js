// Small SVG charts. A screen reader reads each as one sentence.
import {h, svg} from "./dom.js"

const width = 240, height = 56

// chart draws a series of numbers, oldest first; null is a gap. max is the top of the scale, unless
// a value is higher.
export function chart(id, title, values, {max = 0, unit = "", show = String, kind = "area"} = {}) {
  const top = Math.max(max, ...values.filter(v => v !== null), 1e-9)
  const present = values.filter(v => v !== null)
  const now = present.length ? show(present.at(-1)) + unit : "–"
  const x = i => i / Math.max(1, values.length - 1) * width
  const y = v => height - 2 - v / top * (height - 8)
  return h("figure", {class: "chart", id}, h("figcaption", {}, h("span", {}, title), h("b", {}, now)),
    svg("svg", {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${now}, at most ${present.length ? show(Math.max(...present)) + unit : "–"} in five minutes`},
      kind === "bars" ? bars(values, x, y) : line(values, x, y)))
}

function bars(values, x, y) {
  const wide = width / values.length
  return values.map((v, i) => v > 0 && svg("rect", {class: "chart-bar", x: i * wide + .5, y: y(v), width: wide - 1, height: height - y(v)})).filter(Boolean)
}

// line draws the segments between gaps. A single value is a dot.
function line(values, x, y) {
  const stretches = []
  values.forEach((v, i) => {
    if (v === null) return
    if (i === 0 || values[i - 1] === null) stretches.push([])
    stretches.at(-1).push([x(i), y(v)])
  })
  return stretches.map(points => points.length === 1
    ? svg("circle", {class: "chart-dot", cx: points[0][0], cy: points[0][1], r: 2})
    : [svg("path", {class: "chart-area", d: `M${points[0][0]} ${height}L${points.map(p => p.join(" ")).join("L")}L${points.at(-1)[0]} ${height}Z`}),
      svg("path", {class: "chart-line", d: "M" + points.map(p => p.join(" ")).join("L")})]).flat()
}

// phases draws the duration of each phase of a request as a bar.
export function phases(all) {
  const total = all.find(p => p.name === "total")?.millis || Math.max(...all.map(p => p.millis), 1)
  return h("ul", {class: "phases"}, all.map(p => h("li", {vars: {"--part": `${Math.max(.5, Math.min(100, p.millis / total * 100))}%`}},
    h("span", {}, p.name), h("i", {class: "phase-bar"}), h("b", {}, `${p.millis.toFixed(1)} ms`))))
}

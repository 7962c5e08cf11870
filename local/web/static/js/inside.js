// The inside view: what the system did for the last requests, how it does, and what it told others. In English, for those who build it.
import {calls, local} from "./api.js"
import {h, show} from "./dom.js"
import {chart, phases} from "./charts.js"
import {switches, upstreams} from "./switches.js"
import {stream} from "./stream.js"

const every = 2000 // ms between two looks
const kept = 12    // requests that are listed

let total = null       // upstream calls that were given to a request, by kind
let requests = []      // newest first
let chosen = null      // the request that is shown; null: the newest that a guest waited for
const costs = new Map() // route → upstream calls of its last miss, to say what a hit saved

let timer, looking = null
const panel = () => document.getElementById("inside")
const open = () => !panel().hidden

// openInside wires the button and begins to listen. The view begins open where it has room beside the page.
export function openInside() {
  const button = document.getElementById("inside-toggle")
  const set = (on, focus) => {
    panel().hidden = !on
    document.body.classList.toggle("with-inside", on)
    button.setAttribute("aria-expanded", String(on))
    if (on) look()
    if (focus) (on ? document.getElementById("inside-close") : button).focus()
  }
  button.addEventListener("click", () => set(!open(), true))
  document.getElementById("inside-close").addEventListener("click", () => set(false, true))
  panel().addEventListener("keydown", e => e.key === "Escape" && set(false, true))
  calls.addEventListener("call", e => heard(e.detail))
  switches(document.getElementById("inside-switches"), look)
  set(matchMedia("(min-width: 1200px)").matches && !new URLSearchParams(location.search).has("plain"))
  document.addEventListener("visibilitychange", look)
}

// heard notes a request, and what it cost upstream: what the counters moved since the last one was noted. Two routes have an upstream
// route to themselves; of others at the same moment the first gets what they cost together.
async function heard(call) {
  const request = {...call, route: call.method + " " + call.path.split("?")[0].replace(/ppt_\w+/, "{propertyId}"), upstream: null}
  requests = [request, ...requests].slice(0, kept)
  if (!open()) {
    total = null
    return
  }
  paintRequests()
  const counters = await local("GET", "/upstreams").catch(() => null)
  if (!counters) return
  const now = count(counters)
  if (!costly.test(request.route)) {
    total ??= now
    return
  }
  const own = Object.keys(now).find(key => request.route.endsWith(key)) ?? "other"
  if (total && now[own] >= total[own]) {
    request.upstream = now[own] - total[own]
    if (request.cache === "MISS" && request.upstream > 0) costs.set(request.route, request.upstream)
    request.saved = ["HIT", "STALE"].includes(request.cache) ? Math.max(0, (costs.get(request.route) ?? 0) - request.upstream) : 0
    total[own] = now[own]
  } else total = now
  paintRequests()
}

// costly are the routes that ask upstream; the others never do.
const costly = /^(POST \/search|POST \/search\/map|GET \/facets|GET \/hotels\/.*|GET \/wishlist|POST \/handoff)$/

// count adds up the calls of all upstreams, those of the routes apart that serve one route of ours alone.
function count(counters) {
  const sum = {"/facets": 0, "/availability": 0, other: 0}
  for (const name of upstreams) {
    sum.other += counters[name].calls
    for (const [route, n] of Object.entries(counters[name].routes)) {
      const own = Object.keys(sum).find(key => route.endsWith(key))
      if (own) {
        sum[own] += n
        sum.other -= n
      }
    }
  }
  return sum
}

// look asks how the system does, and asks again a little later as long as somebody looks. Two looks at once would count what is told twice.
function look() {
  clearTimeout(timer)
  if (open() && !document.hidden) looking ??= once().finally(() => {
    looking = null
    timer = setTimeout(look, every)
  })
}

async function once() {
  const [inside, counters] = await Promise.all([local("GET", "/inside").catch(() => null), local("GET", "/upstreams").catch(() => null)])
  if (counters) total ??= count(counters)
  if (inside) paintCharts(inside, counters)
  await stream(document.getElementById("inside-stream"), document.getElementById("inside-funnel"))
}

function paintRequests() {
  const one = requests.includes(chosen) ? chosen : requests.find(r => !/telemetry|session/.test(r.route)) ?? requests[0]
  show(document.getElementById("inside-last"), one && request(one),
    h("ul", {class: "calls", id: "inside-calls"}, requests.map(r => h("li", {}, h("button", {type: "button", class: "call", "aria-pressed": String(r === one), onclick: () => {
      chosen = r === chosen ? null : r
      paintRequests()
    }}, status(r), h("span", {class: "call-route"}, r.route), cache(r), h("span", {class: "call-time"}, `${Math.round(r.millis)} ms`))))))
}

const status = r => h("b", {class: "status status-" + Math.floor(r.status / 100)}, r.status)
const cache = r => r.cache ? h("span", {class: "cache cache-" + r.cache.toLowerCase(), "data-cache": r.cache}, r.cache) : h("span", {class: "cache"}, "—")

function request(r) {
  const fact = (term, ...value) => [h("dt", {}, term), h("dd", {}, value)]
  return h("div", {class: "request", id: "inside-request"},
    h("p", {class: "request-line"}, status(r), h("code", {}, r.route)),
    h("dl", {class: "facts facts-small"}, fact("Cache", cache(r)), fact("Time", `${Math.round(r.millis)} ms in the browser`),
      fact("Upstream", r.upstream === null ? "no calls counted" : `${r.upstream} ${r.upstream === 1 ? "call" : "calls"} made, ${r.saved} saved`),
      fact("Degraded", r.degraded.length ? r.degraded.map(d => h("span", {class: "tag tag-bad"}, `${d.part}: ${d.reason}`)) : "nothing"),
      r.limit ? fact("Limit", h("code", {}, r.limit)) : null,
      r.code ? fact("Code", h("code", {}, r.code)) : null, fact("Request", h("code", {}, r.requestId || "—"))),
    r.phases.length > 0 && phases(r.phases))
}

function paintCharts(inside, counters) {
  const slots = inside.slots.slice(0, -1) // the last one is still being counted
  const ratio = slots.map(s => s.hit + s.stale + s.miss ? (s.hit + s.stale) / (s.hit + s.stale + s.miss) * 100 : null)
  history.push(inside.outbox ? inside.outbox.oldestAgeSeconds : null)
  if (history.length > 150) history.shift()
  show(document.getElementById("inside-charts"),
    chart("chart-requests", "Requests per second", slots.map(s => s.requests / inside.slotSeconds), {most: 1, show: n => n.toFixed(1), kind: "bars"}),
    chart("chart-failed", "Refused and failed per second", slots.map(s => (s.refused + s.failed) / inside.slotSeconds), {most: 1, show: n => n.toFixed(1), kind: "bars"}),
    chart("chart-hits", "Hit ratio", ratio, {most: 100, unit: " %", show: n => n.toFixed(0)}),
    chart("chart-outbox", `Outbox age (${inside.outbox ? inside.outbox.unsent : "?"} waiting)`, history, {most: 5, unit: " s", show: n => n.toFixed(1)}))
  show(document.getElementById("inside-breakers"), upstreams.map(name => h("li", {class: "breaker", "data-upstream": name, "data-state": inside.breakers[name]},
    h("span", {}, name), h("b", {class: "tag " + (inside.breakers[name] === "closed" ? "tag-good" : "tag-bad")}, inside.breakers[name]),
    h("small", {}, counters ? `${counters[name].calls} calls` : ""))))
}

const history = [] // of the outbox's age, a value for each look

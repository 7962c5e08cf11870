// The inside view, a developer panel: the last requests, the state of the service, and its
// telemetry. English only.
import {calls, localApi} from "./api.js"
import {h, show} from "./dom.js"
import {chart, phases} from "./charts.js"
import {switches, upstreams} from "./switches.js"
import {updateStream} from "./stream.js"

const pollInterval = 2000 // ms
const maxRequests = 12 // in the list

let totals = null // upstream calls attributed to requests so far, by kind
let requests = [] // newest first
let selected = null // the request shown in detail; null: the newest request that a guest waited for
const missCosts = new Map() // route → upstream calls of its last miss, to show the calls saved by a hit

let timer, polling = null
const panel = () => document.getElementById("inside")
const isOpen = () => !panel().hidden

// openInside connects the button and starts recording. On wide screens the view is open at the
// start.
export function openInside() {
  const button = document.getElementById("inside-toggle")
  const set = (on, focus) => {
    panel().hidden = !on
    document.body.classList.toggle("with-inside", on)
    button.setAttribute("aria-expanded", String(on))
    if (on) poll()
    if (focus) (on ? document.getElementById("inside-close") : button).focus()
  }
  button.addEventListener("click", () => set(!isOpen(), true))
  document.getElementById("inside-close").addEventListener("click", () => set(false, true))
  panel().addEventListener("keydown", e => e.key === "Escape" && set(false, true))
  calls.addEventListener("call", e => recordRequest(e.detail))
  switches(document.getElementById("inside-switches"), poll)
  set(matchMedia("(min-width: 1200px)").matches && !new URLSearchParams(location.search).has("plain"))
  document.addEventListener("visibilitychange", poll)
}

// recordRequest records a request and the number of its upstream calls: the increase of the
// counters since the previous request. Two routes have upstream routes of their own. Of other
// concurrent requests the first gets the calls of all.
async function recordRequest(call) {
  const request = {...call, route: call.method + " " + call.path.split("?")[0].replace(/ppt_\w+/, "{propertyId}"), upstream: null}
  requests = [request, ...requests].slice(0, maxRequests)
  if (!isOpen()) {
    totals = null
    return
  }
  paintRequests()
  const counters = await localApi("GET", "/upstreams").catch(() => null)
  if (!counters) return
  const now = sumCalls(counters)
  if (!upstreamRoutes.test(request.route)) {
    totals ??= now
    return
  }
  const own = Object.keys(now).find(key => request.route.endsWith(key)) ?? "other"
  if (totals && now[own] >= totals[own]) {
    request.upstream = now[own] - totals[own]
    if (request.cache === "MISS" && request.upstream > 0) missCosts.set(request.route, request.upstream)
    request.saved = ["HIT", "STALE"].includes(request.cache) ? Math.max(0, (missCosts.get(request.route) ?? 0) - request.upstream) : 0
    totals[own] = now[own]
  } else totals = now
  paintRequests()
}

// upstreamRoutes matches the routes that call upstreams.
const upstreamRoutes = /^(POST \/search|POST \/search\/map|GET \/facets|GET \/hotels\/.*|GET \/wishlist|POST \/handoff)$/

// sumCalls adds up the calls of all upstreams. Calls of upstream routes that serve a single route
// of the API are counted separately.
function sumCalls(counters) {
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

// poll reads the state of the service repeatedly while the view is visible. Only one poll runs at a
// time, because concurrent polls would count telemetry twice.
function poll() {
  clearTimeout(timer)
  if (isOpen() && !document.hidden) polling ??= pollOnce().finally(() => {
    polling = null
    timer = setTimeout(poll, pollInterval)
  })
}

async function pollOnce() {
  const [inside, counters] = await Promise.all([localApi("GET", "/inside").catch(() => null), localApi("GET", "/upstreams").catch(() => null)])
  if (counters) totals ??= sumCalls(counters)
  if (inside) paintCharts(inside, counters)
  await updateStream(document.getElementById("inside-stream"), document.getElementById("inside-funnel"))
}

function paintRequests() {
  const shown = requests.includes(selected) ? selected : requests.find(r => !/telemetry|session/.test(r.route)) ?? requests[0]
  show(document.getElementById("inside-last"), shown && request(shown),
    h("ul", {class: "calls", id: "inside-calls"}, requests.map(r => h("li", {}, h("button", {type: "button", class: "call", "aria-pressed": String(r === shown), onclick: () => {
      selected = r === selected ? null : r
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
  const slots = inside.slots.slice(0, -1) // the last slot is incomplete
  const ratio = slots.map(s => s.hit + s.stale + s.miss ? (s.hit + s.stale) / (s.hit + s.stale + s.miss) * 100 : null)
  outboxAges.push(inside.outbox ? inside.outbox.oldestAgeSeconds : null)
  if (outboxAges.length > 150) outboxAges.shift()
  show(document.getElementById("inside-charts"),
    chart("chart-requests", "Requests per second", slots.map(s => s.requests / inside.slotSeconds), {max: 1, show: n => n.toFixed(1), kind: "bars"}),
    chart("chart-failed", "Refused and failed per second", slots.map(s => (s.refused + s.failed) / inside.slotSeconds), {max: 1, show: n => n.toFixed(1), kind: "bars"}),
    chart("chart-hits", "Hit ratio", ratio, {max: 100, unit: " %", show: n => n.toFixed(0)}),
    chart("chart-outbox", `Outbox age (${inside.outbox ? inside.outbox.unsent : "?"} waiting)`, outboxAges, {max: 5, unit: " s", show: n => n.toFixed(1)}))
  show(document.getElementById("inside-breakers"), upstreams.map(name => h("li", {class: "breaker", "data-upstream": name, "data-state": inside.breakers[name]},
    h("span", {}, name), h("b", {class: "tag " + (inside.breakers[name] === "closed" ? "tag-good" : "tag-bad")}, inside.breakers[name]),
    h("small", {}, counters ? `${counters[name].calls} calls` : ""))))
}

const outboxAges = [] // one value per poll

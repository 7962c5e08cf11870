// The stream of telemetry as it is delivered, and the funnel of this session in it.
import {local} from "./api.js"
import {h, show} from "./dom.js"

const ours = "melmastoon.bff.consumer."
const most = 60 // messages that are kept to be looked at

let cursor = null
let messages = [] // newest first
const steps = new Map() // funnel step → how often, in this session
let session = ""

// belongs says whose page this is. What was counted of another session is not this one's.
export function belongs(id) {
  if (id === session) return
  session = id
  steps.clear()
  cursor = null
  messages = []
}

// ladder is the way to a booking, in its order.
const ladder = ["session.started", "search.executed", "list.scrolled-50pct", "list.scrolled-90pct", "map.opened", "detail.viewed", "wishlist.added", "handoff.initiated"]

// known subjects that are steps of their own, when no step was told.
const subjects = {"session.started.v1": "session.started", "search.executed.v1": "search.executed", "wishlist.added.v1": "wishlist.added",
  "handoff.initiated.v1": "handoff.initiated", "booking_handoff.initiated.v1": "handoff.initiated"}

// stream takes in what was delivered since the last time.
export async function stream(into, funnel) {
  const found = await local("GET", "/telemetry?since=" + (cursor ?? 0)).catch(() => null)
  if (!found) return
  if (Number(found.cursor) < Number(cursor)) { // the system began anew, and so do its cursors
    cursor = null
    return stream(into, funnel)
  }
  cursor = found.cursor
  for (const m of found.messages) {
    messages.unshift(m)
    if (m.orderingKey !== session) continue
    const step = m.data?.payload?.step ?? subjects[m.subject.replace(ours, "")]
    if (step) steps.set(step, (steps.get(step) ?? 0) + 1)
  }
  messages = messages.slice(0, most)
  if (found.messages.length === 0 && into.childElementCount > 0) return
  const opened = new Set([...into.querySelectorAll("details[open]")].map(d => d.dataset.message))
  show(into, messages.length === 0 && h("li", {}, "Nothing yet."), messages.map(m => h("li", {},
    h("details", {"data-message": m.messageId, "data-subject": m.subject, open: opened.has(m.messageId)},
      h("summary", {}, h("time", {}, m.createdAt.slice(11, 19)), h("span", {}, m.subject.replace(ours, "")), m.orderingKey === session && h("b", {class: "tag"}, "this session")),
      h("pre", {tabindex: "0"}, JSON.stringify(m.data, null, 2))))))
  const top = Math.max(1, ...steps.values())
  show(funnel, ladder.map(step => h("li", {vars: {"--part": `${(steps.get(step) ?? 0) / top * 100}%`}, "data-step": step},
    h("span", {}, step), h("i", {class: "phase-bar"}), h("b", {}, steps.get(step) ?? 0))))
}

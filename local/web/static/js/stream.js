// The stream of published events, and the funnel of the current session.
import {localApi} from "./api.js"
import {h, show} from "./dom.js"

const subjectPrefix = "melmastoon.bff.consumer."
const maxMessages = 60 // messages in the list

let cursor = null
let messages = [] // newest first
const steps = new Map() // funnel step → count in this session
let session = ""

// setSession sets the current session and resets the counts of another session.
export function setSession(id) {
  if (id === session) return
  session = id
  steps.clear()
  cursor = null
  messages = []
}

// funnelSteps lists the steps of the booking funnel in order.
const funnelSteps = ["session.started", "search.executed", "list.scrolled-50pct", "list.scrolled-90pct", "map.opened", "detail.viewed", "wishlist.added", "handoff.initiated"]

// stepOfSubject maps subjects without a step field to funnel steps.
const stepOfSubject = {"session.started.v1": "session.started", "search.executed.v1": "search.executed", "wishlist.added.v1": "wishlist.added",
  "handoff.initiated.v1": "handoff.initiated", "booking_handoff.initiated.v1": "handoff.initiated"}

// updateStream reads the events published since the last call and renders stream and funnel.
export async function updateStream(list, funnel) {
  const found = await localApi("GET", "/telemetry?since=" + (cursor ?? 0)).catch(() => null)
  if (!found) return
  if (Number(found.cursor) < Number(cursor)) { // the server restarted, so its cursors start again
    cursor = null
    return updateStream(list, funnel)
  }
  cursor = found.cursor
  for (const m of found.messages) {
    messages.unshift(m)
    if (m.orderingKey !== session) continue
    const step = m.data?.payload?.step ?? stepOfSubject[m.subject.replace(subjectPrefix, "")]
    if (step) steps.set(step, (steps.get(step) ?? 0) + 1)
  }
  messages = messages.slice(0, maxMessages)
  if (found.messages.length === 0 && list.childElementCount > 0) return
  const opened = new Set([...list.querySelectorAll("details[open]")].map(d => d.dataset.message))
  show(list, messages.length === 0 && h("li", {}, "Nothing yet."), messages.map(m => h("li", {},
    h("details", {"data-message": m.messageId, "data-subject": m.subject, open: opened.has(m.messageId)},
      h("summary", {}, h("time", {}, m.createdAt.slice(11, 19)), h("span", {}, m.subject.replace(subjectPrefix, "")), m.orderingKey === session && h("b", {class: "tag"}, "this session")),
      h("pre", {tabindex: "0"}, JSON.stringify(m.data, null, 2))))))
  const top = Math.max(1, ...steps.values())
  show(funnel, funnelSteps.map(step => h("li", {vars: {"--part": `${(steps.get(step) ?? 0) / top * 100}%`}, "data-step": step},
    h("span", {}, step), h("i", {class: "phase-bar"}), h("b", {}, steps.get(step) ?? 0))))
}

// The public API, as any client would call it, and the few routes of the local system that a page of its own may use.
import {locale} from "./i18n.js"

const base = "/bff/consumer/v1"

// calls tells of every answer of the public API: an event "call" with its detail {method, path, status, millis, cache, phases, requestId,
// degraded}.
export const calls = new EventTarget()

// preferences are what a request says beside its language.
export const preferences = {currency: "USD"}

// Refusal is an answer that is none: a problem of the API, or nothing at all.
export class Refusal extends Error {
  constructor(problem) {
    super(problem.title)
    Object.assign(this, {status: 0, code: "", detail: "", requestId: "", retryAfter: null, errors: []}, problem)
  }
}

// campaign is what brought the guest, as the address the visit began with says it.
const arrived = new URLSearchParams(location.search)
const campaign = [["X-Campaign-Source", "utm_source"], ["X-Campaign-Medium", "utm_medium"], ["X-Campaign-Name", "utm_campaign"]]
  .map(([header, name]) => [header, arrived.get(name)]).filter(([, value]) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value ?? ""))

// solution is the answer to the last puzzle, as long as it is good. It lives in this page alone.
let solution = null
let solving = null // one puzzle at a time: its answer is good for every request

// call asks the public API and answers {body, status, cache}. A puzzle it sets is solved on the way; checking hears of it.
export async function call(method, path, body, {key, signal, keepalive} = {}) {
  const headers = {
    "Accept-Language": locale, "X-Currency": preferences.currency, "X-Client-Screen": `${screen.width}x${screen.height}@${devicePixelRatio}`,
    "X-Client-Timezone": Intl.DateTimeFormat().resolvedOptions().timeZone,
  }
  for (const [header, value] of campaign) headers[header] = value
  if (body !== undefined) headers["Content-Type"] = "application/json"
  if (key) headers["Idempotency-Key"] = key
  const sent = solution
  if (sent && Date.parse(sent.expiresAt) > Date.now()) headers[sent.header] = sent.token
  const ask = () => fetch(base + path, {method, headers, body: body && JSON.stringify(body), signal, keepalive})
  let [answer, content] = await timed(method, path, ask)
  const puzzle = answer.status === 429 && content?.challenge?.providers.find(p => p.kind === "proof-of-work")
  if (puzzle) {
    if (solution === sent) await (solving ??= check(content.challenge.header, puzzle).finally(() => solving = null))
    headers[solution.header] = solution.token
    ;[answer, content] = await timed(method, path, ask)
  }
  if (!answer.ok) throw new Refusal(content?.title ? content : {title: answer.statusText, status: answer.status})
  return {body: content, status: answer.status, cache: answer.headers.get("X-Cache") ?? ""}
}

// check finds the solution, and lets the guest know that something happens.
async function check(header, puzzle) {
  calls.dispatchEvent(new CustomEvent("checking", {detail: true}))
  try {
    solution = {header, expiresAt: puzzle.expiresAt, token: await solve(puzzle)}
  } finally {
    calls.dispatchEvent(new CustomEvent("checking", {detail: false}))
  }
}

const worthWaiting = 3 // seconds, for a guest who looks at what was pressed

// insist is call for what may be done twice: when the service asks for a moment, it is asked once more after it.
export async function insist(method, path, body) {
  try {
    return await call(method, path, body)
  } catch (problem) {
    if (!problem.retriable || !(problem.retryAfter > 0 && problem.retryAfter <= worthWaiting)) throw problem
    await new Promise(resume => setTimeout(resume, problem.retryAfter * 1000))
    return call(method, path, body)
  }
}

async function timed(method, path, ask) {
  const began = performance.now()
  let answer, text
  try {
    answer = await ask()
    text = await answer.text() // may be cut off as well
  } catch (err) {
    if (err.name === "AbortError") throw err
    throw new Refusal({title: "", code: "OFFLINE", retriable: true})
  }
  const millis = performance.now() - began
  const content = answer.headers.get("Content-Type")?.includes("json") && text ? JSON.parse(text) : null
  calls.dispatchEvent(new CustomEvent("call", {detail: {
    method, path, status: answer.status, millis, cache: answer.headers.get("X-Cache") ?? "", phases: phases(answer.headers.get("Server-Timing")),
    requestId: answer.headers.get("X-Request-Id") ?? "", degraded: content?.degraded ?? [], code: answer.ok ? "" : content?.code ?? "",
    limit: answer.headers.get("RateLimit") ?? "",
  }}))
  return [answer, content]
}

// phases reads Server-Timing: [{name, millis}].
export function phases(header) {
  return (header ?? "").split(",").map(part => part.trim()).filter(Boolean).map(part => {
    const [name, ...rest] = part.split(";").map(s => s.trim())
    const millis = rest.find(s => s.startsWith("dur="))
    return {name, millis: millis ? Number(millis.slice(4)) : 0}
  })
}

// solve finds the answer to a puzzle in the background, so that the page does not stand still.
function solve(puzzle) {
  return new Promise((resolve, reject) => {
    const worker = new Worker("/js/puzzle.js", {type: "module"})
    worker.onmessage = event => {
      worker.terminate()
      resolve(event.data)
    }
    worker.onerror = event => {
      worker.terminate()
      reject(new Error(event.message))
    }
    worker.postMessage(puzzle)
  })
}

// shared is the address of a route whose answer does not depend on the guest, with what it does depend on.
export const shared = (path, query = {}) => path + "?" + new URLSearchParams({...query, locale, currency: preferences.currency})

// tell sends telemetry. Nobody waits for it, and a guest never hears that it failed.
export function tell(kind, event) {
  call("POST", "/telemetry/" + kind, {...event, eventId: crypto.randomUUID(), [kind === "page-view" ? "viewedAt" : "occurredAt"]: new Date().toISOString()},
    {keepalive: true}).catch(() => {})
}

// local asks a route of the local system, which exists on this machine only.
export async function local(method, path, body) {
  const answer = await fetch("/_local" + path, {method, body: body && JSON.stringify(body)})
  const text = await answer.text()
  const content = text.trim() ? JSON.parse(text) : null
  if (!answer.ok) throw new Refusal(content ?? {title: answer.statusText, status: answer.status})
  return content
}

// places suggests places of the data set by the beginning of a name.
export const places = async (text, limit = 8) => (await local("GET", "/places?" + new URLSearchParams({q: text, limit}))).places

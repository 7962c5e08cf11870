// Client of the public API, and of the few routes of the local server used by the page.
import {locale} from "./i18n.js"

const base = "/bff/consumer/v1"

// calls dispatches an event "call" for every response of the public API. The event's detail is
// {method, path, status, millis, cache, phases, requestId, degraded, code, limit}. An event
// "checking" with the detail true or false marks the start and end of a bot challenge.
export const calls = new EventTarget()

// preferences are the request settings besides the locale.
export const preferences = {currency: "USD"}

// ApiError is a problem response of the API, or a missing response (code OFFLINE).
export class ApiError extends Error {
  constructor(problem) {
    super(problem.title)
    Object.assign(this, {status: 0, code: "", detail: "", requestId: "", retryAfter: null, errors: []}, problem)
  }
}

// campaign holds the campaign headers, taken from the URL with which the page was opened.
const pageParameters = new URLSearchParams(location.search)
const campaign = [["X-Campaign-Source", "utm_source"], ["X-Campaign-Medium", "utm_medium"], ["X-Campaign-Name", "utm_campaign"]]
  .map(([header, name]) => [header, pageParameters.get(name)]).filter(([, value]) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value ?? ""))

// solution is the solution of the last bot challenge. It is sent until it expires and is kept only
// in this page.
let solution = null
let pendingSolution = null // one challenge at a time: its solution is valid for every request

// call sends a request to the public API and returns {body, status, cache}. If the API answers with
// a bot challenge, call solves the challenge and repeats the request.
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
  const send = () => fetch(base + path, {method, headers, body: body && JSON.stringify(body), signal, keepalive})
  let [response, content] = await timedFetch(method, path, send)
  const challenge = response.status === 429 && content?.challenge?.providers.find(p => p.kind === "proof-of-work")
  if (challenge) {
    if (solution === sent) await (pendingSolution ??= solveChallenge(content.challenge.header, challenge).finally(() => pendingSolution = null))
    headers[solution.header] = solution.token
    ;[response, content] = await timedFetch(method, path, send)
  }
  if (!response.ok) throw new ApiError(content?.title ? content : {title: response.statusText, status: response.status})
  return {body: content, status: response.status, cache: response.headers.get("X-Cache") ?? ""}
}

// solveChallenge computes the solution and dispatches "checking", so that the page shows progress.
async function solveChallenge(header, challenge) {
  calls.dispatchEvent(new CustomEvent("checking", {detail: true}))
  try {
    solution = {header, expiresAt: challenge.expiresAt, token: await solveInWorker(challenge)}
  } finally {
    calls.dispatchEvent(new CustomEvent("checking", {detail: false}))
  }
}

const maxRetryAfter = 3 // seconds; a longer wait is too long after a click

// callWithRetry is call for idempotent requests: it retries once after Retry-After, if that is at
// most maxRetryAfter.
export async function callWithRetry(method, path, body) {
  try {
    return await call(method, path, body)
  } catch (problem) {
    if (!problem.retriable || !(problem.retryAfter > 0 && problem.retryAfter <= maxRetryAfter)) throw problem
    await new Promise(resolve => setTimeout(resolve, problem.retryAfter * 1000))
    return call(method, path, body)
  }
}

async function timedFetch(method, path, send) {
  const started = performance.now()
  let response, text
  try {
    response = await send()
    text = await response.text() // the body may be truncated
  } catch (err) {
    if (err.name === "AbortError") throw err
    throw new ApiError({title: "", code: "OFFLINE", retriable: true})
  }
  const millis = performance.now() - started
  const content = response.headers.get("Content-Type")?.includes("json") && text ? JSON.parse(text) : null
  calls.dispatchEvent(new CustomEvent("call", {detail: {
    method, path, status: response.status, millis, cache: response.headers.get("X-Cache") ?? "", phases: phases(response.headers.get("Server-Timing")),
    requestId: response.headers.get("X-Request-Id") ?? "", degraded: content?.degraded ?? [], code: response.ok ? "" : content?.code ?? "",
    limit: response.headers.get("RateLimit") ?? "",
  }}))
  return [response, content]
}

// phases parses Server-Timing into [{name, millis}].
export function phases(header) {
  return (header ?? "").split(",").map(part => part.trim()).filter(Boolean).map(part => {
    const [name, ...rest] = part.split(";").map(s => s.trim())
    const millis = rest.find(s => s.startsWith("dur="))
    return {name, millis: millis ? Number(millis.slice(4)) : 0}
  })
}

// solveInWorker solves a challenge in a worker, so that the page stays responsive.
function solveInWorker(challenge) {
  return new Promise((resolve, reject) => {
    const worker = new Worker("/js/proofofwork.js", {type: "module"})
    worker.onmessage = event => {
      worker.terminate()
      resolve(event.data)
    }
    worker.onerror = event => {
      worker.terminate()
      reject(new Error(event.message))
    }
    worker.postMessage(challenge)
  })
}

// sharedPath returns the path of a shared (cacheable) route with locale and currency in the query.
export const sharedPath = (path, query = {}) => path + "?" + new URLSearchParams({...query, locale, currency: preferences.currency})

// track sends a telemetry event without waiting. Failures are ignored.
export function track(kind, event) {
  call("POST", "/telemetry/" + kind, {...event, eventId: crypto.randomUUID(), [kind === "page-view" ? "viewedAt" : "occurredAt"]: new Date().toISOString()},
    {keepalive: true}).catch(() => {})
}

// localApi calls a route of the local server. These routes do not exist in a deployment.
export async function localApi(method, path, body) {
  const response = await fetch("/_local" + path, {method, body: body && JSON.stringify(body)})
  const text = await response.text()
  const content = text.trim() ? JSON.parse(text) : null
  if (!response.ok) throw new ApiError(content ?? {title: response.statusText, status: response.status})
  return content
}

// suggestPlaces returns places of the dataset by name prefix.
export const suggestPlaces = async (text, limit = 8) => (await localApi("GET", "/places?" + new URLSearchParams({q: text, limit}))).places

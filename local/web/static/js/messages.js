// Messages for missing, degraded and failed responses.
import {ApiError} from "./api.js"
import {h, icon, announce} from "./dom.js"
import {t, has, locale, number} from "./i18n.js"

// degradedMessage lists the missing parts of a response; null without missing parts.
export function degradedMessage(parts) {
  if (!parts?.length) return null
  const lines = [...new Set(parts.map(p => p.part))].map(part => h("li", {}, has("part." + part) ? t("part." + part) : part))
  return h("div", {class: "note note-degraded", role: "status", id: "degraded-note"}, h("strong", {}, t("degraded")), h("ul", {}, lines))
}

// staleMessage says that the response is a stale cache entry.
export const staleMessage = cache => cache === "STALE" && h("p", {class: "note note-stale", role: "status", id: "stale-note"}, t("staleList"))

// problemMessage shows a problem, with a retry button that is enabled after Retry-After.
export function problemMessage(problem, retry) {
  const offline = problem.code === "OFFLINE" || !(problem instanceof ApiError)
  if (!(problem instanceof ApiError)) console.error(problem) // not a response: a bug of the page
  const final = [404, 410, 422].includes(problem.status) // a retry would give the same result
  const button = retry && !final && h("button", {class: "button", type: "button", onclick: retry}, t("retry"))
  const note = h("div", {class: "note note-error", role: "alert", id: "problem"},
    h("strong", {class: "problem-title", dir: "auto"}, offline ? t("offline") : problemTitle(problem)),
    problem.detail && (locale === "en" || !isKnown(problem)) && h("p", {class: "problem-detail", dir: "auto"}, problem.detail), // the detail is in English
    problem.errors?.length > 0 && h("ul", {}, problem.errors.map(e => h("li", {dir: "ltr"}, `${e.field}: ${e.detail}`))),
    problem.code && !offline && h("p", {class: "problem-code", dir: "ltr"}, problem.code),
    problem.requestId && h("p", {class: "problem-request", dir: "auto"}, t("requestId", {id: problem.requestId})),
    button)
  if (button && problem.retryAfter > 0) countDown(button, problem.retryAfter)
  return note
}

// problemTitle returns the title of a problem in the page's language, if the page has a text for
// it.
function problemTitle(problem) {
  if (problem.code === "OFFLINE") return t("offline")
  return isKnown(problem) ? t(textKey(problem)) : problem.title || t("failed")
}

const textKey = problem => "problem." + String(problem.code ?? "").split(".").at(-1)
const isKnown = problem => has(textKey(problem))

// countDown enables a button after some seconds and shows the remaining seconds.
function countDown(button, seconds) {
  button.disabled = true
  button.textContent = t("retryIn", {n: number(seconds)})
  if (seconds > 0) {
    setTimeout(() => countDown(button, seconds - 1), 1000)
    return
  }
  button.disabled = false
  button.textContent = t("retry")
}

// skeletons returns placeholders for cards.
export const skeletons = n => h("div", {class: "skeletons", "aria-hidden": "true"}, Array.from({length: n}, () =>
  h("div", {class: "skeleton"}, h("div", {class: "skeleton-picture"}), h("div", {class: "skeleton-lines"}, h("i"), h("i"), h("i")))))

// emptyMessage says that there are no results and gives a hint.
export const emptyMessage = (title, hint, ...more) => h("div", {class: "empty", id: "empty"}, icon("search"), h("h2", {}, title), h("p", {}, hint), more)

let toastTimer
// toast shows a short confirmation.
export function toast(text, millis = 2500) {
  const box = document.getElementById("toast")
  box.textContent = text
  box.classList.add("shown")
  clearTimeout(toastTimer)
  toastTimer = setTimeout(() => box.classList.remove("shown"), millis)
  announce(text)
}

// toastProblem shows a failed action for 8 s.
export const toastProblem = problem => toast(problemTitle(problem), 8000)

// What the page says when an answer is missing, partly missing, or refused.
import {Refusal} from "./api.js"
import {h, icon, announce} from "./dom.js"
import {t, has, locale, number} from "./i18n.js"

// degraded says what is missing from an answer, or nothing.
export function degraded(parts) {
  if (!parts?.length) return null
  const lines = [...new Set(parts.map(p => p.part))].map(part => h("li", {}, has("part." + part) ? t("part." + part) : part))
  return h("div", {class: "note note-degraded", role: "status", id: "degraded-note"}, h("strong", {}, t("degraded")), h("ul", {}, lines))
}

// stale says that an answer is kept from before.
export const stale = cache => cache === "STALE" && h("p", {class: "note note-stale", role: "status", id: "stale-note"}, t("staleList"))

// refused shows a problem, with a button that tries again once the service allows it.
export function refused(problem, again) {
  const offline = problem.code === "OFFLINE" || !(problem instanceof Refusal)
  if (!(problem instanceof Refusal)) console.error(problem) // no answer of the service: a mistake of ours
  const final = [404, 410, 422].includes(problem.status) // asked again, it would be the same
  const button = again && !final && h("button", {class: "button", type: "button", onclick: again}, t("retry"))
  const note = h("div", {class: "note note-error", role: "alert", id: "problem"},
    h("strong", {class: "problem-title", dir: "auto"}, offline ? t("offline") : title(problem)),
    problem.detail && (locale === "en" || !known(problem)) && h("p", {class: "problem-detail", dir: "auto"}, problem.detail), // it is English
    problem.errors?.length > 0 && h("ul", {}, problem.errors.map(e => h("li", {dir: "ltr"}, `${e.field}: ${e.detail}`))),
    problem.code && !offline && h("p", {class: "problem-code", dir: "ltr"}, problem.code),
    problem.requestId && h("p", {class: "problem-request", dir: "auto"}, t("requestId", {id: problem.requestId})),
    button)
  if (button && problem.retryAfter > 0) countDown(button, problem.retryAfter)
  return note
}

// title says what happened in the language of the page, if we know that problem.
function title(problem) {
  if (problem.code === "OFFLINE") return t("offline")
  return known(problem) ? t(text(problem)) : problem.title || t("failed")
}

const text = problem => "problem." + String(problem.code ?? "").split(".").at(-1)
const known = problem => has(text(problem))

// countDown lets a button be pressed after some seconds, and says how many are left.
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

// skeletons stand where cards will be.
export const skeletons = n => h("div", {class: "skeletons", "aria-hidden": "true"}, Array.from({length: n}, () =>
  h("div", {class: "skeleton"}, h("div", {class: "skeleton-picture"}), h("div", {class: "skeleton-lines"}, h("i"), h("i"), h("i")))))

// empty says that there is nothing, and what to do about it.
export const empty = (title, hint, ...more) => h("div", {class: "empty", id: "empty"}, icon("search"), h("h2", {}, title), h("p", {}, hint), more)

let toastEnds
// toast says for a moment what was done.
export function toast(text, millis = 2500) {
  const box = document.getElementById("toast")
  box.textContent = text
  box.classList.add("shown")
  clearTimeout(toastEnds)
  toastEnds = setTimeout(() => box.classList.remove("shown"), millis)
  announce(text)
}

// trouble says what was not done, for as long as it takes to look up and press again.
export const trouble = problem => toast(title(problem), 8000)

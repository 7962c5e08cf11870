// The list of hotels that a search found.
import {call, preferences, tell} from "./api.js"
import {h, show, announce} from "./dom.js"
import {t, number, placeName, plural} from "./i18n.js"
import {card} from "./card.js"
import {facets} from "./gazette.js"
import {filters, sorter} from "./filters.js"
import {degraded, empty, refused, skeletons, stale} from "./notes.js"
import {pageSize, request} from "./query.js"
import {saw} from "./seen.js"
import {heart} from "./wishlist.js"

// list searches, and shows what comes as long as somebody waits for it. change is told of another query.
export async function list(view, q, place, change, signal) {
  const tools = h("div", {class: "tools"}, sorter(q, change))
  const body = h("div", {class: "results", id: "results", "aria-busy": "true"}, skeletons(4))
  const title = h("h1", {id: "results-title"}, t("loading"))
  show(view, title, tools, body)
  announce(t("loading"))
  try {
    const [answer, catalog] = await Promise.all([
      call("POST", "/search", request(q, preferences.currency), {signal}),
      q.country ? facets(q.country, q.kind === "country" ? "" : q.place) : [],
    ])
    if (signal.aborted) return
    const found = answer.body
    saw(found.listings)
    if (catalog.length) tools.prepend(filters(q, catalog, change))
    const count = plural("found", found.resultCount)
    title.textContent = t("in", {found: count, place: place ? placeName(place) : q.place})
    announce(title.textContent)
    show(body, hint(found.queryRewriteHint), degraded(found.degraded), stale(answer.cache), cards(found, q), pager(found, q, change))
    watch(body, found)
  } catch (problem) {
    if (signal.aborted) return
    title.textContent = t("failed")
    show(body, refused(problem, () => list(view, q, place, change, signal)))
  }
  body.removeAttribute("aria-busy")
}

function cards(found, q) {
  if (found.listings.length === 0) return empty(t("nothing"), t("nothingHint"))
  const pricing = !found.degraded.some(d => d.part === "pricing")
  return found.listings.map((listing, i) => card(listing, {
    q, position: found.page.offset + i + 1, kind: "listing-card", heart: heart(listing, "list"), pricing,
    from: {page: q.page, sortKey: found.sortKey, searchSessionId: found.searchSessionId},
  }))
}

// hint says what was looked for instead of what was typed.
const hint = rewrite => rewrite?.used && h("p", {class: "note"}, t("insteadOf", {name: rewrite.used}))

function pager(found, q, change) {
  const pages = Math.ceil(found.resultCount / pageSize)
  if (pages < 2) return null
  const step = (text, page, id) => h("button", {class: "button", type: "button", id, disabled: page < 1 || page > pages, onclick: () => change({...q, page})}, text)
  return h("nav", {class: "pager", "aria-label": t("page", {n: number(q.page), of: number(pages)})}, step(t("previous"), q.page - 1, "previous-page"),
    h("span", {}, t("page", {n: number(q.page), of: number(pages)})), step(t("next"), q.page + 1, "next-page"))
}

// watch tells how far the guest has scrolled, once for half and once for nearly all of the list.
function watch(body, found) {
  const all = body.querySelectorAll(".card")
  const steps = [["list.scrolled-50pct", Math.ceil(all.length * .5) - 1], ["list.scrolled-90pct", Math.ceil(all.length * .9) - 1]]
  for (const [step, i] of steps) {
    if (!all[i]) continue
    const seen = new IntersectionObserver(entries => {
      if (!entries.some(e => e.isIntersecting)) return
      seen.disconnect()
      tell("funnel", {step, searchSessionId: found.searchSessionId, metadata: {cards: all.length}})
    })
    seen.observe(all[i])
  }
}

// The result list of a search.
import {call, preferences, track} from "./api.js"
import {h, show, announce} from "./dom.js"
import {t, number, placeName, plural} from "./i18n.js"
import {card} from "./card.js"
import {facets} from "./names.js"
import {filters, sorter} from "./filters.js"
import {degradedMessage, emptyMessage, problemMessage, skeletons, staleMessage} from "./messages.js"
import {pageSize, searchBody} from "./query.js"
import {rememberTenants} from "./recenttenants.js"
import {heart} from "./wishlist.js"

// list searches and shows the results, until signal aborts. change is called with a changed query.
export async function list(view, q, place, change, signal) {
  const tools = h("div", {class: "tools"}, sorter(q, change))
  const body = h("div", {class: "results", id: "results", "aria-busy": "true"}, skeletons(4))
  const title = h("h1", {id: "results-title"}, t("loading"))
  show(view, title, tools, body)
  announce(t("loading"))
  try {
    const [response, catalog] = await Promise.all([
      call("POST", "/search", searchBody(q, preferences.currency), {signal}),
      q.country ? facets(q.country, q.kind === "country" ? "" : q.place) : [],
    ])
    if (signal.aborted) return
    const found = response.body
    rememberTenants(found.listings)
    if (catalog.length) tools.prepend(filters(q, catalog, change))
    const count = plural("found", found.resultCount)
    title.textContent = t("in", {found: count, place: place ? placeName(place) : q.place})
    announce(title.textContent)
    show(body, rewriteNote(found.queryRewriteHint), degradedMessage(found.degraded), staleMessage(response.cache), cards(found, q), pager(found, q, change))
    trackScroll(body, found)
  } catch (problem) {
    if (signal.aborted) return
    title.textContent = t("failed")
    show(body, problemMessage(problem, () => list(view, q, place, change, signal)))
  }
  body.removeAttribute("aria-busy")
}

function cards(found, q) {
  if (found.listings.length === 0) return emptyMessage(t("nothing"), t("nothingHint"))
  const pricing = !found.degraded.some(d => d.part === "pricing")
  return found.listings.map((listing, i) => card(listing, {
    q, position: found.page.offset + i + 1, kind: "listing-card", heart: heart(listing, "list"), pricing,
    from: {page: q.page, sortKey: found.sortKey, searchSessionId: found.searchSessionId},
  }))
}

// rewriteNote shows the query that search used instead of the typed query.
const rewriteNote = rewrite => rewrite?.used && h("p", {class: "note"}, t("insteadOf", {name: rewrite.used}))

function pager(found, q, change) {
  const pages = Math.ceil(found.resultCount / pageSize)
  if (pages < 2) return null
  const step = (text, page, id) => h("button", {class: "button", type: "button", id, disabled: page < 1 || page > pages, onclick: () => change({...q, page})}, text)
  return h("nav", {class: "pager", "aria-label": t("page", {n: number(q.page), of: number(pages)})}, step(t("previous"), q.page - 1, "previous-page"),
    h("span", {}, t("page", {n: number(q.page), of: number(pages)})), step(t("next"), q.page + 1, "next-page"))
}

// trackScroll reports when the guest has scrolled past 50 % and past 90 % of the list, once each.
function trackScroll(body, found) {
  const all = body.querySelectorAll(".card")
  const steps = [["list.scrolled-50pct", Math.ceil(all.length * .5) - 1], ["list.scrolled-90pct", Math.ceil(all.length * .9) - 1]]
  for (const [step, i] of steps) {
    if (!all[i]) continue
    const seen = new IntersectionObserver(entries => {
      if (!entries.some(e => e.isIntersecting)) return
      seen.disconnect()
      track("funnel", {step, searchSessionId: found.searchSessionId, metadata: {cards: all.length}})
    })
    seen.observe(all[i])
  }
}

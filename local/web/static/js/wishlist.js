// The wishlist: heart buttons on cards, and the page of saved hotels.
import {call, callWithRetry, track} from "./api.js"
import {h, show, icon} from "./dom.js"
import {t, name, number} from "./i18n.js"
import {card} from "./card.js"
import {degradedMessage, emptyMessage, problemMessage, skeletons, toast, toastProblem} from "./messages.js"

const saved = new Set() // property ids

// setSaved takes over the wishlist of the session.
export function setSaved(session) {
  saved.clear()
  for (const ref of session.wishlistRefs) saved.add(ref.propertyId)
  showCount()
}

function showCount() {
  const badge = document.getElementById("saved-count")
  badge.textContent = saved.size ? number(saved.size) : ""
  badge.hidden = saved.size === 0
}

// heart returns the button that adds a hotel to the wishlist or removes it.
export function heart(listing, source) {
  const button = h("button", {class: "heart", type: "button", "data-property": listing.propertyId, onclick: () => toggle(listing, source, button)}, icon("heart"))
  return updateButton(button, listing)
}

function updateButton(button, listing) {
  const is = saved.has(listing.propertyId)
  button.setAttribute("aria-pressed", is)
  button.setAttribute("aria-label", `${t(is ? "unsave" : "save")}: ${name(listing.name)}`)
  return button
}

async function toggle(listing, source, button) {
  const {propertyId, tenantId} = listing
  const was = saved.has(propertyId)
  button.disabled = true
  try {
    if (was) await callWithRetry("DELETE", "/wishlist/" + propertyId)
    else await callWithRetry("POST", "/wishlist", {propertyId, tenantId, source})
    was ? saved.delete(propertyId) : saved.add(propertyId)
    toast(t(was ? "removedNow" : "savedNow"))
    if (!was) track("funnel", {step: "wishlist.added", propertyId, tenantId})
  } catch (problem) {
    toastProblem(problem)
  }
  button.disabled = false
  for (const other of document.querySelectorAll(`.heart[data-property="${propertyId}"]`)) updateButton(other, listing)
  showCount()
}

// savedPage shows the wishlist.
export async function savedPage(view, q) {
  const body = h("div", {class: "results", id: "saved-list"}, skeletons(3))
  show(view, h("h1", {}, t("saved")), body)
  try {
    const {body: list} = await call("GET", "/wishlist")
    if (list.items.length === 0) {
      show(body, emptyMessage(t("nothingSaved"), t("nothingSavedHint")))
      return
    }
    show(body, degradedMessage(list.degraded), list.items.map((item, i) => item.listing
      ? card(item.listing, {q, position: i + 1, kind: "wishlist-card", heart: heart(item.listing, "list"), priced: false})
      : h("article", {class: "card card-gone"}, h("p", {}, t("gone")), heart({...item, name: {default: item.propertyId}}, "list"))))
  } catch (problem) {
    show(body, problemMessage(problem, () => savedPage(view, q)))
  }
}

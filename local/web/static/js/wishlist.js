// What the guest wants to remember: the hearts on the cards, and the page of all that was saved.
import {call, insist, tell} from "./api.js"
import {h, show, icon} from "./dom.js"
import {t, name, number} from "./i18n.js"
import {card} from "./card.js"
import {degraded, empty, refused, skeletons, toast, trouble} from "./notes.js"

const saved = new Set() // property ids

// know takes over what the session says is saved.
export function know(session) {
  saved.clear()
  for (const ref of session.wishlistRefs) saved.add(ref.propertyId)
  count()
}

function count() {
  const badge = document.getElementById("saved-count")
  badge.textContent = saved.size ? number(saved.size) : ""
  badge.hidden = saved.size === 0
}

// heart is a button that saves a hotel, or forgets it.
export function heart(listing, source) {
  const button = h("button", {class: "heart", type: "button", "data-property": listing.propertyId, onclick: () => toggle(listing, source, button)}, icon("heart"))
  return paint(button, listing)
}

function paint(button, listing) {
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
    if (was) await insist("DELETE", "/wishlist/" + propertyId)
    else await insist("POST", "/wishlist", {propertyId, tenantId, source})
    was ? saved.delete(propertyId) : saved.add(propertyId)
    toast(t(was ? "removedNow" : "savedNow"))
    if (!was) tell("funnel", {step: "wishlist.added", propertyId, tenantId})
  } catch (problem) {
    trouble(problem)
  }
  button.disabled = false
  for (const other of document.querySelectorAll(`.heart[data-property="${propertyId}"]`)) paint(other, listing)
  count()
}

// savedPage shows all that was saved.
export async function savedPage(view, q) {
  const body = h("div", {class: "results", id: "saved-list"}, skeletons(3))
  show(view, h("h1", {}, t("saved")), body)
  try {
    const {body: list} = await call("GET", "/wishlist")
    if (list.items.length === 0) {
      show(body, empty(t("nothingSaved"), t("nothingSavedHint")))
      return
    }
    show(body, degraded(list.degraded), list.items.map((item, i) => item.listing
      ? card(item.listing, {q, position: i + 1, kind: "wishlist-card", heart: heart(item.listing, "list"), priced: false})
      : h("article", {class: "card card-gone"}, h("p", {}, t("gone")), heart({...item, name: {default: item.propertyId}}, "list"))))
  } catch (problem) {
    show(body, refused(problem, () => savedPage(view, q)))
  }
}

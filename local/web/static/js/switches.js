// Switches for upstream faults, tenant events and flags.
import {localApi} from "./api.js"
import {h, show} from "./dom.js"
import {name} from "./i18n.js"
import {tenantEvents, tenants as recentTenants} from "./recenttenants.js"

const behaviours = {
  normal: null, slow: {latencyMs: 700, jitterMs: 300}, "one in three fails": {errorRate: .34}, broken: {errorRate: 1}, "hangs": {hang: true}, "malformed responses": {malformed: true},
}
export const upstreams = ["search", "pricing", "property", "theme"]

// switches renders the switches into box. changed is called after each change.
export function switches(box, changed) {
  const outcome = h("p", {class: "switch-outcome", id: "switch-outcome", role: "status"})
  // apply runs the action of a switch and shows the outcome.
  const apply = async (label, action) => {
    outcome.textContent = label + " …"
    try {
      await action()
      outcome.textContent = label + ": done"
    } catch (problem) {
      outcome.textContent = `${label}: ${problem.detail || problem.title || problem.message}`
    }
    await refresh()
    changed()
  }

  const services = upstreams.map(service => {
    const select = h("select", {id: "upstream-" + service, onchange: () => apply(`${service} ${select.value}`, () => behaviours[select.value]
      ? localApi("PUT", "/upstreams/" + service, behaviours[select.value]) : localApi("DELETE", "/upstreams/" + service))}, Object.keys(behaviours).map(key => h("option", {value: key}, key)))
    return row("upstream-" + service, service, select)
  })

  const tenant = h("select", {id: "tenant"})
  const names = () => {
    const before = tenant.value
    show(tenant, recentTenants.size === 0 && h("option", {value: ""}, "search first"), [...recentTenants].map(([id, brand]) => h("option", {value: id, selected: id === before}, name(brand))))
  }
  tenantEvents.addEventListener("tenants", names)
  names()
  const publish = (subject, payload) => async () => {
    const {eventId} = await localApi("POST", "/events", {subject, payload: payload(tenant.value, new Date().toISOString())})
    await waitUntilDelivered(eventId)
  }
  const publishButton = (id, text, subject, payload) => h("button", {class: "button button-small", type: "button", id, onclick: () => {
    if (!tenant.value) return outcome.textContent = "Search first: the list has the tenants."
    apply(text, publish(subject, payload))
  }}, text)
  const tenants = h("div", {class: "switch-row"}, h("label", {for: "tenant"}, "Tenant"), tenant, h("div", {class: "switch-buttons"},
    publishButton("suspend", "Suspend", "melmastoon.tenant.suspended.v1", (tenantId, at) => ({tenantId, reason: "billing-overdue", suspendedAt: at})),
    publishButton("reinstate", "Reinstate", "melmastoon.tenant.reinstated.v1", (tenantId, at) => ({tenantId, reinstatedAt: at})),
    publishButton("publish-theme", "Publish a theme", "melmastoon.theme.published.v1", (tenantId, at) => ({tenantId, themeId: ulid("thm"), publishedVersion: ulid("thv"), publishedAt: at}))))

  const campaign = h("input", {type: "checkbox", id: "campaign", onchange: () => apply("campaign mode", () => localApi("PUT", "/flags", {campaignMode: campaign.checked}))})
  const limits = h("input", {type: "checkbox", id: "limits", onchange: () => apply("limits", () => localApi("PUT", "/flags", {limitsEnabled: limits.checked}))})
  const allSearches = h("input", {type: "checkbox", id: "whole", onchange: () => apply("sampling", () => localApi("PUT", "/flags", {sampling: allSearches.checked ? {"search.executed": 1} : null}))})
  const bots = h("select", {id: "bot-mode", onchange: () => apply("bots " + bots.value, () => localApi("PUT", "/flags", {botMode: bots.value}))},
    ["off", "observe", "enforce"].map(mode => h("option", {value: mode}, mode)))

  show(box, services, tenants, row("bot-mode", "Bots", bots), check(campaign, "Campaign mode"), check(limits, "Limits"), check(allSearches, "Report every search, not one in ten"), outcome)

  // refresh reads the current state, which other clients may have changed.
  const refresh = async () => {
    const [counters, flags] = await Promise.all([localApi("GET", "/upstreams"), localApi("GET", "/flags")])
    for (const service of upstreams) {
      const b = counters[service].behaviour
      const behaviour = b.hang ? "hangs" : b.malformed ? "malformed responses" : b.errorRate >= 1 ? "broken" : b.errorRate > 0 ? "one in three fails" : b.latencyMs > 0 ? "slow" : "normal"
      document.getElementById("upstream-" + service).value = behaviour
    }
    campaign.checked = flags.campaignMode
    limits.checked = flags.limitsEnabled
    allSearches.checked = (flags.sampling?.["search.executed"] ?? 1) >= 1
    bots.value = flags.botMode
  }
  refresh().catch(() => outcome.textContent = "The switches cannot be read at present.")
}

const row = (id, text, input) => h("div", {class: "switch-row"}, h("label", {for: id}, text), input)
const check = (input, text) => h("div", {class: "check"}, input, h("label", {for: input.id}, text))

// ulid returns an id for the current time. Two ids of one millisecond are equal; manual clicks are
// slower.
function ulid(prefix) {
  const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
  let text = "", n = Date.now()
  for (let i = 0; i < 10; i++, n = Math.floor(n / 32)) text = letters[n % 32] + text
  return prefix + "_" + text + "0".repeat(16)
}

// waitUntilDelivered waits at most five seconds for the function's response to an event.
async function waitUntilDelivered(eventId) {
  for (let tries = 0; tries < 50; tries++) {
    const {events: [event]} = await localApi("GET", "/events?eventId=" + eventId)
    if (event?.outcome) {
      if (event.outcome.status >= 400) throw new Error(`the function answered ${event.outcome.status}`)
      return
    }
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  throw new Error("not delivered yet")
}

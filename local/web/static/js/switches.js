// Switches that make the system behave otherwise: upstreams, tenants, flags.
import {local} from "./api.js"
import {h, show} from "./dom.js"
import {name} from "./i18n.js"
import {seen, tenants as known} from "./seen.js"

const ways = {
  well: null, slow: {latencyMs: 700, jitterMs: 300}, "one in three fails": {errorRate: .34}, broken: {errorRate: 1}, "hangs": {hang: true}, "half answers": {malformed: true},
}
export const upstreams = ["search", "pricing", "property", "theme"]

// switches fills the box. changed is called when one was turned.
export function switches(box, changed) {
  const outcome = h("p", {class: "switch-outcome", id: "switch-outcome", role: "status"})
  // turn does what a switch says, and tells how that went.
  const turn = async (what, act) => {
    outcome.textContent = what + " …"
    try {
      await act()
      outcome.textContent = what + ": done"
    } catch (problem) {
      outcome.textContent = `${what}: ${problem.detail || problem.title || problem.message}`
    }
    await refresh()
    changed()
  }

  const services = upstreams.map(service => {
    const select = h("select", {id: "upstream-" + service, onchange: () => turn(`${service} ${select.value}`, () => ways[select.value]
      ? local("PUT", "/upstreams/" + service, ways[select.value]) : local("DELETE", "/upstreams/" + service))}, Object.keys(ways).map(way => h("option", {value: way}, way)))
    return row("upstream-" + service, service, select)
  })

  const tenant = h("select", {id: "tenant"})
  const names = () => {
    const before = tenant.value
    show(tenant, known.size === 0 && h("option", {value: ""}, "search first"), [...known].map(([id, brand]) => h("option", {value: id, selected: id === before}, name(brand))))
  }
  seen.addEventListener("tenants", names)
  names()
  const tell = (subject, payload) => async () => {
    const {eventId} = await local("POST", "/events", {subject, payload: payload(tenant.value, new Date().toISOString())})
    await delivered(eventId)
  }
  const act = (id, text, subject, payload) => h("button", {class: "button button-small", type: "button", id, onclick: () => {
    if (!tenant.value) return outcome.textContent = "Search first: the tenants are those of the list."
    turn(text, tell(subject, payload))
  }}, text)
  const tenants = h("div", {class: "switch-row"}, h("label", {for: "tenant"}, "Tenant"), tenant, h("div", {class: "switch-buttons"},
    act("suspend", "Suspend", "melmastoon.tenant.suspended.v1", (tenantId, at) => ({tenantId, reason: "billing-overdue", suspendedAt: at})),
    act("reinstate", "Reinstate", "melmastoon.tenant.reinstated.v1", (tenantId, at) => ({tenantId, reinstatedAt: at})),
    act("publish-theme", "Publish a theme", "melmastoon.theme.published.v1", (tenantId, at) => ({tenantId, themeId: ulid("thm"), publishedVersion: ulid("thv"), publishedAt: at}))))

  const campaign = h("input", {type: "checkbox", id: "campaign", onchange: () => turn("campaign mode", () => local("PUT", "/flags", {campaignMode: campaign.checked}))})
  const limits = h("input", {type: "checkbox", id: "limits", onchange: () => turn("limits", () => local("PUT", "/flags", {limitsEnabled: limits.checked}))})
  const whole = h("input", {type: "checkbox", id: "whole", onchange: () => turn("sampling", () => local("PUT", "/flags", {sampling: whole.checked ? {"search.executed": 1} : null}))})
  const bots = h("select", {id: "bot-mode", onchange: () => turn("bots " + bots.value, () => local("PUT", "/flags", {botMode: bots.value}))},
    ["off", "observe", "enforce"].map(mode => h("option", {value: mode}, mode)))

  show(box, services, tenants, row("bot-mode", "Bots", bots), check(campaign, "Campaign mode"), check(limits, "Limits"), check(whole, "Tell of every search, not of one in ten"), outcome)

  // refresh shows how things are, whoever changed them.
  const refresh = async () => {
    const [counters, flags] = await Promise.all([local("GET", "/upstreams"), local("GET", "/flags")])
    for (const service of upstreams) {
      const b = counters[service].behaviour
      const way = b.hang ? "hangs" : b.malformed ? "half answers" : b.errorRate >= 1 ? "broken" : b.errorRate > 0 ? "one in three fails" : b.latencyMs > 0 ? "slow" : "well"
      document.getElementById("upstream-" + service).value = way
    }
    campaign.checked = flags.campaignMode
    limits.checked = flags.limitsEnabled
    whole.checked = (flags.sampling?.["search.executed"] ?? 1) >= 1
    bots.value = flags.botMode
  }
  refresh().catch(() => outcome.textContent = "The switches cannot be read at present.")
}

const row = (id, text, input) => h("div", {class: "switch-row"}, h("label", {for: id}, text), input)
const check = (input, text) => h("div", {class: "check"}, input, h("label", {for: input.id}, text))

// ulid makes an id of now. Two of the same millisecond would be the same theme, which nobody publishes by hand.
function ulid(prefix) {
  const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
  let text = "", n = Date.now()
  for (let i = 0; i < 10; i++, n = Math.floor(n / 32)) text = letters[n % 32] + text
  return prefix + "_" + text + "0".repeat(16)
}

// delivered waits until the function has answered for an event, five seconds at most.
async function delivered(eventId) {
  for (let tries = 0; tries < 50; tries++) {
    const {events: [event]} = await local("GET", "/events?eventId=" + eventId)
    if (event?.outcome) {
      if (event.outcome.status >= 400) throw new Error(`answered ${event.outcome.status}`)
      return
    }
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  throw new Error("not delivered yet")
}

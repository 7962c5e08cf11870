// The form a guest searches with.
import {places} from "./api.js"
import {h, icon} from "./dom.js"
import {t, number, placeName, countryName} from "./i18n.js"
import {furthest, longest, plus, today} from "./query.js"

// form makes the form for a query; found is the place it names. submit gets the query that was entered.
export function form(q, found, submit) {
  const chosen = {place: q.place, kind: q.kind, country: q.country, shown: found ? label(found) : q.place}
  const where = combobox(chosen)
  const checkIn = h("input", {type: "date", id: "check-in", required: true, min: today(), max: plus(today(), furthest), value: q.checkIn})
  const checkOut = h("input", {type: "date", id: "check-out", required: true, min: plus(q.checkIn, 1), max: plus(q.checkIn, longest), value: q.checkOut})
  checkIn.addEventListener("change", () => {
    if (!checkIn.value) return
    const stay = Math.max(1, Math.min(longest, (Date.parse(checkOut.value) - Date.parse(q.checkIn)) / 864e5 || 3))
    q.checkIn = checkIn.value
    checkOut.min = plus(checkIn.value, 1)
    checkOut.max = plus(checkIn.value, longest)
    checkOut.value = plus(checkIn.value, stay)
  })
  const ages = h("div", {class: "ages", id: "ages"})
  const adults = select("adults", 1, 16, q.adults), rooms = select("rooms", 1, 8, q.rooms), children = select("children", 0, 10, q.children)
  const ask = () => ages.replaceChildren(...Array.from({length: Number(children.value)}, (_, i) =>
    field(t("age", {n: number(i + 1)}), select("age-" + (i + 1), 0, 17, q.ages[i] ?? 8))))
  children.addEventListener("change", ask)
  ask()
  const element = h("form", {id: "search-form", class: "search-form", role: "search", novalidate: true, onsubmit: async event => {
    event.preventDefault()
    await where.settle()
    if (!chosen.place) return where.input.focus()
    submit({...q, ...chosen, checkIn: checkIn.value || q.checkIn, checkOut: checkOut.value || q.checkOut, adults: Number(adults.value), rooms: Number(rooms.value),
      children: Number(children.value), ages: [...ages.querySelectorAll("select")].map(s => Number(s.value)), page: 1,
      ...(chosen.place === q.place ? {} : {neighbourhoods: []})}) // another place has others
  }},
  where.element, field(t("checkIn"), checkIn), field(t("checkOut"), checkOut), field(t("adults"), adults), field(t("children"), children),
  field(t("rooms"), rooms), h("button", {class: "button button-main", type: "submit", id: "search-button"}, icon("search"), t("go")), ages)
  return element
}

export const field = (text, input) => h("div", {class: "field"}, h("label", {for: input.id}, text), input)

const select = (id, least, most, value) => h("select", {id}, Array.from({length: most - least + 1}, (_, i) =>
  h("option", {value: String(least + i), selected: least + i === value}, number(least + i))))

const label = place => place.kind === "country" ? placeName(place)
  : `${placeName(place)}${place.kind === "region" ? ` (${t("region")})` : ""}${t("comma")} ${countryName(place.country)}`

// combobox is a field that suggests places. It writes what was chosen into chosen; what was only typed is looked up at the end.
function combobox(chosen) {
  let options = [], active = -1, asked = 0
  const list = h("ul", {id: "suggestions", class: "suggestions", role: "listbox", "aria-label": t("where"), hidden: true})
  const input = h("input", {id: "where", type: "text", role: "combobox", autocomplete: "off", "aria-expanded": "false", "aria-controls": "suggestions",
    "aria-autocomplete": "list", placeholder: t("wherePlaceholder"), value: chosen.shown, maxlength: "80", dir: "auto"})
  const close = () => {
    list.hidden = true
    active = -1
    input.setAttribute("aria-expanded", "false")
    input.removeAttribute("aria-activedescendant")
  }
  const take = place => {
    Object.assign(chosen, {place: place.query, kind: place.kind, country: place.country, shown: label(place)})
    input.value = chosen.shown
    close()
  }
  const paint = () => {
    list.replaceChildren(...options.map((place, i) => h("li", {id: "suggestion-" + i, role: "option", "aria-selected": String(i === active),
      // Before the field loses the focus, or the list would be gone by then.
      onmousedown: event => event.preventDefault(), onclick: () => take(place)},
    icon(place.kind === "city" ? "pin" : "globe"), h("span", {dir: "auto"}, label(place)), h("small", {}, number(place.properties)))))
    list.hidden = options.length === 0
    input.setAttribute("aria-expanded", String(!list.hidden))
    if (active >= 0) input.setAttribute("aria-activedescendant", "suggestion-" + active)
    else input.removeAttribute("aria-activedescendant")
  }
  const suggest = async () => {
    const mine = ++asked
    const found = await places(input.value.trim().split(/[,،]/)[0]).catch(() => [])
    if (mine !== asked || document.activeElement !== input) return
    options = found.slice(0, 8)
    active = -1
    paint()
  }
  input.addEventListener("input", () => {
    chosen.place = ""
    suggest()
  })
  input.addEventListener("focus", () => {
    input.select()
    if (!chosen.place) suggest()
  })
  input.addEventListener("blur", close)
  input.addEventListener("keydown", event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault()
      if (list.hidden) return suggest()
      active = (active + (event.key === "ArrowDown" ? 1 : options.length + (active < 0 ? 0 : -1))) % options.length
      paint()
    } else if (event.key === "Enter" && active >= 0 && !list.hidden) {
      event.preventDefault()
      take(options[active])
    } else if (event.key === "Escape") close()
  })
  return {
    input,
    element: h("div", {class: "field field-where"}, h("label", {for: "where"}, t("where")), input, list),
    settle: async () => {
      close()
      if (chosen.place || !input.value.trim()) return
      const [first] = await places(input.value.trim(), 1).catch(() => [])
      if (first) take(first)
      else Object.assign(chosen, {place: input.value.trim(), kind: "city", country: "", shown: input.value.trim()})
    },
  }
}

// The search form.
import {suggestPlaces} from "./api.js"
import {h, icon} from "./dom.js"
import {t, number, placeName, countryName} from "./i18n.js"
import {maxDaysAhead, maxNights, addDays, today} from "./query.js"

// form returns the search form for a query. found is the query's place, or null. submit receives
// the entered query.
export function form(q, found, submit) {
  const chosen = {place: q.place, kind: q.kind, country: q.country, shown: found ? label(found) : q.place}
  const where = combobox(chosen)
  const checkIn = h("input", {type: "date", id: "check-in", required: true, min: today(), max: addDays(today(), maxDaysAhead), value: q.checkIn})
  const checkOut = h("input", {type: "date", id: "check-out", required: true, min: addDays(q.checkIn, 1), max: addDays(q.checkIn, maxNights), value: q.checkOut})
  checkIn.addEventListener("change", () => {
    if (!checkIn.value) return
    const stay = Math.max(1, Math.min(maxNights, (Date.parse(checkOut.value) - Date.parse(q.checkIn)) / 864e5 || 3))
    q.checkIn = checkIn.value
    checkOut.min = addDays(checkIn.value, 1)
    checkOut.max = addDays(checkIn.value, maxNights)
    checkOut.value = addDays(checkIn.value, stay)
  })
  const ages = h("div", {class: "ages", id: "ages"})
  const adults = select("adults", 1, 16, q.adults), rooms = select("rooms", 1, 8, q.rooms), children = select("children", 0, 10, q.children)
  const updateAges = () => ages.replaceChildren(...Array.from({length: Number(children.value)}, (_, i) =>
    field(t("age", {n: number(i + 1)}), select("age-" + (i + 1), 0, 17, q.ages[i] ?? 8))))
  children.addEventListener("change", updateAges)
  updateAges()
  const element = h("form", {id: "search-form", class: "search-form", role: "search", novalidate: true, onsubmit: async event => {
    event.preventDefault()
    await where.settle()
    if (!chosen.place) return where.input.focus()
    submit({...q, ...chosen, checkIn: checkIn.value || q.checkIn, checkOut: checkOut.value || q.checkOut, adults: Number(adults.value), rooms: Number(rooms.value),
      children: Number(children.value), ages: [...ages.querySelectorAll("select")].map(s => Number(s.value)), page: 1,
      ...(chosen.place === q.place ? {} : {neighbourhoods: []})}) // neighbourhoods belong to the place
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

// combobox returns a text field with place suggestions. The selected place is written into chosen.
// A typed name without a selection is looked up on submit.
function combobox(chosen) {
  let options = [], active = -1, lastRequest = 0
  const list = h("ul", {id: "suggestions", class: "suggestions", role: "listbox", "aria-label": t("where"), hidden: true})
  const input = h("input", {id: "where", type: "text", role: "combobox", autocomplete: "off", "aria-expanded": "false", "aria-controls": "suggestions",
    "aria-autocomplete": "list", placeholder: t("wherePlaceholder"), value: chosen.shown, maxlength: "80", dir: "auto"})
  const close = () => {
    list.hidden = true
    active = -1
    input.setAttribute("aria-expanded", "false")
    input.removeAttribute("aria-activedescendant")
  }
  const choose = place => {
    Object.assign(chosen, {place: place.query, kind: place.kind, country: place.country, shown: label(place)})
    input.value = chosen.shown
    close()
  }
  const render = () => {
    list.replaceChildren(...options.map((place, i) => h("li", {id: "suggestion-" + i, role: "option", "aria-selected": String(i === active),
      // Keep the focus in the field: blur would close the list before the click.
      onmousedown: event => event.preventDefault(), onclick: () => choose(place)},
    icon(place.kind === "city" ? "pin" : "globe"), h("span", {dir: "auto"}, label(place)), h("small", {}, number(place.properties)))))
    list.hidden = options.length === 0
    input.setAttribute("aria-expanded", String(!list.hidden))
    if (active >= 0) input.setAttribute("aria-activedescendant", "suggestion-" + active)
    else input.removeAttribute("aria-activedescendant")
  }
  const suggest = async () => {
    const request = ++lastRequest
    const found = await suggestPlaces(input.value.trim().split(/[,،]/)[0]).catch(() => [])
    if (request !== lastRequest || document.activeElement !== input) return
    options = found.slice(0, 8)
    active = -1
    render()
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
      render()
    } else if (event.key === "Enter" && active >= 0 && !list.hidden) {
      event.preventDefault()
      choose(options[active])
    } else if (event.key === "Escape") close()
  })
  return {
    input,
    element: h("div", {class: "field field-where"}, h("label", {for: "where"}, t("where")), input, list),
    settle: async () => {
      close()
      if (chosen.place || !input.value.trim()) return
      const [first] = await suggestPlaces(input.value.trim(), 1).catch(() => [])
      if (first) choose(first)
      else Object.assign(chosen, {place: input.value.trim(), kind: "city", country: "", shown: input.value.trim()})
    },
  }
}

// Filters and order of a list.
import {preferences} from "./api.js"
import {h} from "./dom.js"
import {t, digits, number} from "./i18n.js"
import {field} from "./form.js"
import {filtered, lists, sorts} from "./query.js"

// sorter chooses the order.
export function sorter(q, change) {
  const select = h("select", {id: "sort", onchange: () => change({...q, sort: select.value, page: 1})},
    sorts.map(key => h("option", {value: key, selected: q.sort === key}, t("sort." + key))))
  return h("div", {class: "field field-inline"}, h("label", {for: "sort"}, t("sort")), select)
}

// filters makes the filters of a country's facets. They take effect when the guest says so, all at once.
export function filters(q, catalog, change) {
  const choice = {...q}
  for (const key of lists) choice[key] = [...q[key]]
  const groups = catalog.filter(f => lists.includes(f.key)).map(f => h("fieldset", {class: "filter"}, h("legend", {}, t("facet." + f.key)),
    f.values.slice(0, 10).map((v, i) => {
      const id = `filter-${f.key}-${i}`
      return h("div", {class: "check"}, h("input", {type: "checkbox", id, value: v.value, checked: q[f.key].includes(v.value), onchange: event => {
        choice[f.key] = event.target.checked ? [...choice[f.key], v.value] : choice[f.key].filter(x => x !== v.value)
      }}), h("label", {for: id}, h("span", {dir: "auto"}, digits(v.label)), h("small", {}, number(v.count))))
    })))
  const singles = catalog.filter(f => ["guestRatingMin", "cancellationFlexibility"].includes(f.key)).map(f => {
    const select = h("select", {id: "filter-" + f.key, onchange: () => choice[f.key] = select.value},
      h("option", {value: ""}, t("any")), f.values.map(v => h("option", {value: v.value, selected: q[f.key] === v.value}, digits(v.label))))
    return field(t("facet." + f.key), select)
  })
  const most = h("input", {type: "text", id: "filter-maxPrice", inputmode: "numeric", pattern: "\\d*", maxlength: "12", value: q.maxPrice,
    onchange: () => choice.maxPrice = most.value.replace(/\D/g, "")})
  const n = filtered(q)
  return h("details", {id: "filters", class: "filters"},
    h("summary", {}, t("filters"), n > 0 && h("span", {class: "count"}, number(n))),
    h("form", {class: "filter-groups", onsubmit: event => {
      event.preventDefault()
      choice.maxPrice = most.value.replace(/\D/g, "")
      change({...choice, page: 1})
    }},
    h("div", {class: "filter-singles"}, singles, field(t("maxPrice", {currency: preferences.currency}), most)), groups,
    h("div", {class: "filter-buttons"}, h("button", {class: "button button-main", type: "submit", id: "filters-apply"}, t("apply")),
      h("button", {class: "button", type: "button", id: "filters-clear", onclick: () => {
        const none = {...q, page: 1, guestRatingMin: "", cancellationFlexibility: "", maxPrice: ""}
        for (const key of lists) none[key] = []
        change(none)
      }}, t("clearFilters")))))
}

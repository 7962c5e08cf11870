// Filters and sort order of a list.
import {preferences} from "./api.js"
import {h} from "./dom.js"
import {t, digits, number} from "./i18n.js"
import {field} from "./form.js"
import {countFilters, multiFilters, sorts} from "./query.js"

// sorter returns the sort select.
export function sorter(q, change) {
  const select = h("select", {id: "sort", onchange: () => change({...q, sort: select.value, page: 1})},
    sorts.map(key => h("option", {value: key, selected: q.sort === key}, t("sort." + key))))
  return h("div", {class: "field field-inline"}, h("label", {for: "sort"}, t("sort")), select)
}

// filters returns the filter form for the facets of a country. All changes take effect on submit.
export function filters(q, catalog, change) {
  const edited = {...q}
  for (const key of multiFilters) edited[key] = [...q[key]]
  const groups = catalog.filter(f => multiFilters.includes(f.key)).map(f => h("fieldset", {class: "filter"}, h("legend", {}, t("facet." + f.key)),
    f.values.slice(0, 10).map((v, i) => {
      const id = `filter-${f.key}-${i}`
      return h("div", {class: "check"}, h("input", {type: "checkbox", id, value: v.value, checked: q[f.key].includes(v.value), onchange: event => {
        edited[f.key] = event.target.checked ? [...edited[f.key], v.value] : edited[f.key].filter(x => x !== v.value)
      }}), h("label", {for: id}, h("span", {dir: "auto"}, digits(v.label)), h("small", {}, number(v.count))))
    })))
  const singles = catalog.filter(f => ["guestRatingMin", "cancellationFlexibility"].includes(f.key)).map(f => {
    const select = h("select", {id: "filter-" + f.key, onchange: () => edited[f.key] = select.value},
      h("option", {value: ""}, t("any")), f.values.map(v => h("option", {value: v.value, selected: q[f.key] === v.value}, digits(v.label))))
    return field(t("facet." + f.key), select)
  })
  const maxPrice = h("input", {type: "text", id: "filter-maxPrice", inputmode: "numeric", pattern: "\\d*", maxlength: "12", value: q.maxPrice,
    onchange: () => edited.maxPrice = maxPrice.value.replace(/\D/g, "")})
  const n = countFilters(q)
  return h("details", {id: "filters", class: "filters"},
    h("summary", {}, t("filters"), n > 0 && h("span", {class: "count"}, number(n))),
    h("form", {class: "filter-groups", onsubmit: event => {
      event.preventDefault()
      edited.maxPrice = maxPrice.value.replace(/\D/g, "")
      change({...edited, page: 1})
    }},
    h("div", {class: "filter-singles"}, singles, field(t("maxPrice", {currency: preferences.currency}), maxPrice)), groups,
    h("div", {class: "filter-buttons"}, h("button", {class: "button button-main", type: "submit", id: "filters-apply"}, t("apply")),
      h("button", {class: "button", type: "button", id: "filters-clear", onclick: () => {
        const none = {...q, page: 1, guestRatingMin: "", cancellationFlexibility: "", maxPrice: ""}
        for (const key of multiFilters) none[key] = []
        change(none)
      }}, t("clearFilters")))))
}

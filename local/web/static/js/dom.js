// DOM helpers. Elements are built without HTML strings, so data such as hotel names cannot become
// markup.

// h creates an element. Properties: on… adds a listener, vars sets CSS variables, every other
// property sets an attribute; null and false are omitted. Children may be nested arrays; null and
// false are omitted.
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children)
}

const svgSpace = "http://www.w3.org/2000/svg"

// svg is h for SVG elements.
export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(svgSpace, tag), properties, children)
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
    else if (name === "vars") for (const [key, v] of Object.entries(value)) element.style.setProperty(key, v)
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value
    else element.setAttribute(name, value === true ? "" : value)
  }
  element.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false))
  return element
}

// show replaces the children of an element.
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false))
}

// announce sends a text to screen readers.
export function announce(text) {
  document.getElementById("announcer").textContent = text
}

const icons = {
  heart: "M12 20.5 4.2 12.9a5 5 0 0 1 7.1-7.1l.7.7.7-.7a5 5 0 0 1 7.1 7.1Z",
  star: "m12 3 2.7 5.8 6.3.8-4.6 4.4 1.2 6.3L12 17.2l-5.6 3.1 1.2-6.3L3 9.6l6.3-.8Z",
  search: "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm5 11.5L20.5 20.5",
  pin: "M12 21s-7-6.2-7-11.5a7 7 0 0 1 14 0C19 14.8 12 21 12 21Zm0-9.2a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6Z",
  globe: "M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17Zm-8.5 8.5h17M12 3.5c5 5 5 12 0 17M12 3.5c-5 5-5 12 0 17",
}

// icon returns a decorative icon; the text next to it has the meaning.
export function icon(name, filled) {
  return svg("svg", {class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", "data-filled": filled || null}, svg("path", {d: icons[name]}))
}

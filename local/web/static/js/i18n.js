// Language of the page: texts, direction, and formats of numbers, money and dates.

export const locales = {
  "en": "English", "ps-AF": "پښتو", "fa-AF": "دری", "fa-IR": "فارسی", "tg-TJ": "Тоҷикӣ",
  "ar": "العربية", "ur-PK": "اردو", "ru": "Русский", "fr": "Français",
}
export const currencies = ["AFN", "USD", "EUR", "IRR", "PKR", "AED", "GBP"]

// isLocale reports whether the page supports a locale. The argument may be any string.
export const isLocale = tag => Object.hasOwn(locales, tag)

export let locale = "en"
let texts = {}
let fallback = {}

const language = tag => tag.split("-")[0]
const rightToLeft = tag => ["ar", "fa", "ps", "ur"].includes(language(tag))

// setLocale loads the texts of a locale and sets the language and direction of the document.
export async function setLocale(wanted) {
  locale = isLocale(wanted) ? wanted : "en"
  const load = async lang => (await import(`./texts/${lang}.js`)).default
  ;[fallback, texts] = await Promise.all([load("en"), load(language(locale))])
  document.documentElement.lang = locale
  document.documentElement.dir = rightToLeft(locale) ? "rtl" : "ltr"
}

// browserLocale returns the first supported language of the browser.
export function browserLocale() {
  for (const tag of navigator.languages) {
    const found = isLocale(tag) ? tag : Object.keys(locales).find(l => language(l) === language(tag))
    if (found) return found
  }
  return "en"
}

// t returns a text and replaces {name} by the value of that name.
export function t(key, values = {}) {
  const text = texts[key] ?? fallback[key] ?? key
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "")
}

// has reports whether a text exists for the key.
export const has = key => fallback[key] !== undefined

// name returns a localized string: the entry of the locale, else of its language, else the default.
export function name(text) {
  return text?.localized?.[locale] ?? text?.localized?.[language(locale)] ?? text?.default ?? ""
}

// placeName returns the name of a place in the language of the page.
export const placeName = place => place.kind === "country" ? countryName(place.country) : place.names?.[language(locale)] ?? place.name

// numberLocale returns a locale that the browser can format. For an unsupported locale such as
// Pashto it is a related locale with the same digits and separators.
function numberLocale() {
  if (Intl.NumberFormat.supportedLocalesOf([locale]).length > 0) return locale
  return {ps: "fa-AF", tg: "ru"}[language(locale)] ?? "en"
}

export const number = (value, options) => new Intl.NumberFormat(numberLocale(), options).format(value)

// digits replaces the digits in a text of the API by those of the page's locale.
export const digits = text => text?.replace(/\d/g, d => number(Number(d)))

// exponents lists the ISO 4217 exponents other than 2. Browsers deviate from ISO 4217: they drop
// the fraction of AFN, IRR and PKR.
const exponents = {BHD: 3, IQD: 3, JOD: 3, KWD: 3, LYD: 3, OMR: 3, TND: 3, JPY: 0, KRW: 0, VND: 0}

// decimal converts minor units, a string of digits, to major units without rounding: "450050" of
// AFN is "4500.50".
function decimal(minor, currency) {
  const exponent = exponents[currency] ?? 2
  if (exponent === 0) return minor
  const digits = minor.padStart(exponent + 1, "0")
  return digits.slice(0, -exponent) + "." + digits.slice(-exponent)
}

// money formats an amount of minor units in the guest's language.
export function money(minor, currency) {
  const amount = decimal(minor, currency)
  const exponent = exponents[currency] ?? 2
  const whole = !/[1-9]/.test(amount.split(".")[1] ?? "")
  const digits = whole ? 0 : exponent
  // In right-to-left text "US$" would appear as "$US", so only the sign is shown.
  const rtl = rightToLeft(locale)
  const text = new Intl.NumberFormat(numberLocale(), {style: "currency", currency, currencyDisplay: rtl ? "narrowSymbol" : "symbol",
    minimumFractionDigits: digits, maximumFractionDigits: digits}).format(amount)
  return rtl ? text.replace("US$", "$") : text
}

// compactAmount formats an amount in major units without fraction and currency, for narrow cells.
export function compactAmount(minor, currency) {
  const units = Math.round(Number(decimal(minor, currency)))
  return number(units, units < 100_000 ? {} : {notation: "compact", maximumFractionDigits: 1})
}

// parseAmount converts an amount typed in major units to minor units. It returns "" for an invalid
// text.
export function parseAmount(text, currency) {
  const match = /^(\d{1,12})$/.exec(text.trim())
  return match ? String(BigInt(match[1]) * 10n ** BigInt(exponents[currency] ?? 2)) : ""
}

// day formats a date such as "2026-12-01" in the Gregorian calendar, like the date fields of the
// page.
export function day(date, options = {day: "numeric", month: "long", weekday: "short"}) {
  const at = new Date(date + "T00:00:00Z")
  if (Intl.DateTimeFormat.supportedLocalesOf([locale]).length > 0) {
    return new Intl.DateTimeFormat(locale, {...options, calendar: "gregory", timeZone: "UTC"}).format(at)
  }
  const months = t("months").split(" "), weekdays = t("weekdays").split(" ")
  const parts = []
  if (options.weekday) parts.push(weekdays[at.getUTCDay()] + (options.day ? t("comma") : ""))
  if (options.day) parts.push(number(at.getUTCDate()))
  if (options.month) parts.push(months[at.getUTCMonth()])
  if (options.year) parts.push(number(at.getUTCFullYear(), {useGrouping: false}))
  return parts.join(" ")
}

// time formats a timestamp with date and time of day in UTC.
export function time(instant) {
  const at = new Date(instant)
  const clock = new Intl.DateTimeFormat(numberLocale(), {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone: "UTC"}).format(at)
  return `${day(instant.slice(0, 10), {day: "numeric", month: "long", year: "numeric"})}${t("comma")} ${clock} UTC`
}

// countryName returns the name of a country, or its code if the browser has no name.
export function countryName(code) {
  try {
    const known = Intl.DisplayNames.supportedLocalesOf([locale]).length > 0 ? locale : language(locale) === "ps" ? "fa-AF" : numberLocale()
    return new Intl.DisplayNames([known], {type: "region"}).of(code) ?? code
  } catch {
    return code
  }
}

// plural returns the text for a number: key.one, key.few, key.many or key.other, by the language's
// rules.
export function plural(key, n, values = {}) {
  const form = new Intl.PluralRules(locale).select(n)
  const found = [`${key}.${form}`, `${key}.other`].find(k => texts[k] !== undefined) ?? `${key}.${n === 1 ? "one" : "other"}`
  return t(found, {n: number(n), ...values})
}

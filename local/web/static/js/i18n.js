// The language of the page: its texts, its direction, and how it writes numbers, money and days.

export const locales = {
  "en": "English", "ps-AF": "پښتو", "fa-AF": "دری", "fa-IR": "فارسی", "tg-TJ": "Тоҷикӣ",
  "ar": "العربية", "ur-PK": "اردو", "ru": "Русский", "fr": "Français",
}
export const currencies = ["AFN", "USD", "EUR", "IRR", "PKR", "AED", "GBP"]

// isLocale reports whether the page speaks a locale; any text may be asked about.
export const isLocale = tag => Object.hasOwn(locales, tag)

export let locale = "en"
let texts = {}
let fallback = {}

const language = tag => tag.split("-")[0]
const rightToLeft = tag => ["ar", "fa", "ps", "ur"].includes(language(tag))

// speak loads the texts of a locale and turns the document around for it.
export async function speak(wanted) {
  locale = isLocale(wanted) ? wanted : "en"
  const load = async lang => (await import(`./texts/${lang}.js`)).default
  ;[fallback, texts] = await Promise.all([load("en"), load(language(locale))])
  document.documentElement.lang = locale
  document.documentElement.dir = rightToLeft(locale) ? "rtl" : "ltr"
}

// understood is the first of the browser's languages that the page speaks.
export function understood() {
  for (const tag of navigator.languages) {
    const found = isLocale(tag) ? tag : Object.keys(locales).find(l => language(l) === language(tag))
    if (found) return found
  }
  return "en"
}

// t is a text; {name} in it is replaced by the value of that name.
export function t(key, values = {}) {
  const text = texts[key] ?? fallback[key] ?? key
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "")
}

// has reports whether there is a text of that key.
export const has = key => fallback[key] !== undefined

// name shows a localized string: under the locale, else under its language, else as it is.
export function name(text) {
  return text?.localized?.[locale] ?? text?.localized?.[language(locale)] ?? text?.default ?? ""
}

// placeName is the name of a place of the data set in the language of the page.
export const placeName = place => place.kind === "country" ? countryName(place.country) : place.names?.[language(locale)] ?? place.name

// Browsers do not know every locale of ours. Pashto is then written with the digits and separators of its neighbour.
function numbers() {
  if (Intl.NumberFormat.supportedLocalesOf([locale]).length > 0) return locale
  return {ps: "fa-AF", tg: "ru"}[language(locale)] ?? "en"
}

export const number = (value, options) => new Intl.NumberFormat(numbers(), options).format(value)

// digits writes the digits in a text of the API as the page writes its numbers.
export const digits = text => text?.replace(/\d/g, d => number(Number(d)))

// exponents are those of ISO 4217 that are not 2. What a browser shows of a currency differs: it drops the digits of AFN, IRR and PKR.
const exponents = {BHD: 3, IQD: 3, JOD: 3, KWD: 3, LYD: 3, OMR: 3, TND: 3, JPY: 0, KRW: 0, VND: 0}

// decimal is an amount of minor units, a string of digits, in units: "450050" of AFN is "4500.50". Nothing is rounded.
function decimal(minor, currency) {
  const exponent = exponents[currency] ?? 2
  if (exponent === 0) return minor
  const digits = minor.padStart(exponent + 1, "0")
  return digits.slice(0, -exponent) + "." + digits.slice(-exponent)
}

// money writes an amount of minor units as the guest's language does.
export function money(minor, currency) {
  const amount = decimal(minor, currency)
  const exponent = exponents[currency] ?? 2
  const whole = !/[1-9]/.test(amount.split(".")[1] ?? "")
  const digits = whole ? 0 : exponent
  // Between letters that run from right to left "US$" would be shown as "$US": the sign alone says the same.
  const rtl = rightToLeft(locale)
  const text = new Intl.NumberFormat(numbers(), {style: "currency", currency, currencyDisplay: rtl ? "narrowSymbol" : "symbol",
    minimumFractionDigits: digits, maximumFractionDigits: digits}).format(amount)
  return rtl ? text.replace("US$", "$") : text
}

// rough is an amount in units without its fraction and its currency, for where there is little room.
export function rough(minor, currency) {
  const units = Math.round(Number(decimal(minor, currency)))
  return number(units, units < 100_000 ? {} : {notation: "compact", maximumFractionDigits: 1})
}

// minor is what a guest typed in units, in minor units; "" when it is no amount.
export function minor(text, currency) {
  const match = /^(\d{1,12})$/.exec(text.trim())
  return match ? String(BigInt(match[1]) * 10n ** BigInt(exponents[currency] ?? 2)) : ""
}

// day writes a date, "2026-12-01", in the calendar that the date fields of the page have too.
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

// time writes an instant with its time of day, in UTC as the API has it.
export function time(instant) {
  const at = new Date(instant)
  const clock = new Intl.DateTimeFormat(numbers(), {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone: "UTC"}).format(at)
  return `${day(instant.slice(0, 10), {day: "numeric", month: "long", year: "numeric"})}${t("comma")} ${clock} UTC`
}

// countryName is the name of a country, its code where the browser does not know it.
export function countryName(code) {
  try {
    const known = Intl.DisplayNames.supportedLocalesOf([locale]).length > 0 ? locale : language(locale) === "ps" ? "fa-AF" : numbers()
    return new Intl.DisplayNames([known], {type: "region"}).of(code) ?? code
  } catch {
    return code
  }
}

// plural picks the text of a number: key.one, key.few, key.many or key.other, whichever the language has.
export function plural(key, n, values = {}) {
  const form = new Intl.PluralRules(locale).select(n)
  const found = [`${key}.${form}`, `${key}.other`].find(k => texts[k] !== undefined) ?? `${key}.${n === 1 ? "one" : "other"}`
  return t(found, {n: number(n), ...values})
}

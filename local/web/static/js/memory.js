// What one page leaves for the next one of the same tab. A browser that is told to keep nothing loses it, and nothing else.

export function leave(key, value) {
  try {
    sessionStorage.setItem(key, value)
  } catch {
    // refused
  }
}

export function left(key) {
  try {
    return sessionStorage.getItem(key)
  } catch {
    return null
  }
}

export function forget() {
  try {
    sessionStorage.clear()
  } catch {
    // refused
  }
}

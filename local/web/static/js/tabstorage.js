// Values shared between pages of one tab (sessionStorage). If the browser blocks storage, values
// are lost without an error.

export function setItem(key, value) {
  try {
    sessionStorage.setItem(key, value)
  } catch {
    // storage is blocked
  }
}

export function getItem(key) {
  try {
    return sessionStorage.getItem(key)
  } catch {
    return null
  }
}

export function clear() {
  try {
    sessionStorage.clear()
  } catch {
    // storage is blocked
  }
}

/** Whether the user has signed out. A page that is still open must then not store anything. */
let isClosed = false

/**
 * The text that a page has stored in this tab; empty if there is none. Reading allows writing again after a
 * sign-out.
 */
export function readTabStorage(name: string): string {
  isClosed = false
  return sessionStorage.getItem(name) ?? ''
}

/**
 * Stores a text until the tab is closed or the user signs out; returns false if the browser has no space for
 * it.
 */
export function writeTabStorage(name: string, text: string): boolean {
  if (isClosed) return true
  try {
    sessionStorage.setItem(name, text)
    return true
  } catch {
    return false
  }
}

/** Removes everything that pages have stored in this tab, and prevents further writing. */
export function clearTabStorage(): void {
  isClosed = true
  sessionStorage.clear()
}

/** Whether the account has signed out, so that a page that is still open must not store anything. */
let isClosed = false

/** The text that a page has kept in this tab; empty without one. */
export function readTabStorage(name: string): string {
  isClosed = false
  return sessionStorage.getItem(name) ?? ''
}

/** Keeps a text until the tab is closed or the account signs out; false if the browser has no space for it. */
export function writeTabStorage(name: string, text: string): boolean {
  if (isClosed) return true
  try {
    sessionStorage.setItem(name, text)
    return true
  } catch {
    return false
  }
}

/** Removes everything that pages have kept in this tab. */
export function clearTabStorage(): void {
  isClosed = true
  sessionStorage.clear()
}

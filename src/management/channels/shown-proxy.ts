/** A proxy's URL without its password, for responses. */
export function shownProxy(proxy: string): string {
  return proxy.replace(/^([^/@]*\/\/[^/@:]*):.*@/s, '$1:***@')
}

/**
 * Returns the proxy that is meant: if the sent one equals the shown form of the stored one, the stored one.
 */
export function meantProxy(sent: unknown, stored: unknown): unknown {
  return typeof stored === 'string' && sent === shownProxy(stored) ? stored : sent
}

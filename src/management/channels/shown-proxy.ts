/** A proxy's URL without its password, for responses. */
export function shownProxy(proxy: string): string {
  return proxy.replace(/^([^/@]*\/\/[^/@:]*):.*@/s, '$1:***@')
}

/** The proxy that a sent one means: a shown one that comes back stands for the stored one. */
export function meantProxy(sent: unknown, stored: unknown): unknown {
  return typeof stored === 'string' && sent === shownProxy(stored) ? stored : sent
}
